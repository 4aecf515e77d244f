package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/engine"
)

func newPauseCommand() *cobra.Command {
	var f processFlags
	var why, by string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Make running processes stop reading, and keep their partitions",
		Long:  help("pause"),
		Example: "  plumbline pause --url http://10.0.0.7:8080 --url http://10.0.0.8:8080 --why 'broker upgrade' " +
			"--wait 1m",
		Args: cli.Args(cobra.NoArgs),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&why, "why", "", "`reason`, kept with the decision")
	cmd.Flags().StringVar(&by, "by", userName(), "`name` of the person who decides (default: the user)")
	cmd.Flags().DurationVar(&f.wait, "wait", 0,
		"wait this long until all that was read is in checkpoints")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if strings.TrimSpace(why) == "" {
			return cli.Usagef("--why: must say why")
		}
		return f.each(cmd, "pause", url.Values{"by": {by}, "why": {why}})
	}
	return cmd
}

func newResumeCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Make paused processes read again",
		Args:  cli.Args(cobra.NoArgs),
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.each(cmd, "resume", nil) }
	return cmd
}

// pauseAnswer is the answer of one process.
type pauseAnswer struct {
	URL    string              `json:"url"`
	Paused *engine.PauseStatus `json:"paused"`
}

// each asks all processes, and waits for them; the first that does not answer ends it.
func (f *processFlags) each(cmd *cobra.Command, what string, query url.Values) error {
	urls, err := f.bases(cmd)
	if err != nil {
		return err
	}
	client, err := f.client()
	if err != nil {
		return err
	}
	var answers []pauseAnswer
	for _, u := range urls {
		a, err := f.settle(u, func() (pauseAnswer, error) { return post(cmd.Context(), client, u, what, query) })
		if err != nil {
			return err
		}
		answers = append(answers, a)
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, map[string]any{"processes": answers})
	}
	for _, a := range answers {
		if a.Paused == nil {
			printf(cmd, "%s reads\n", a.URL)
			continue
		}
		printf(cmd, "%s is paused since %s by %q: %s (settled: %v)\n", a.URL, a.Paused.Since.Format(time.RFC3339),
			a.Paused.By, a.Paused.Why, a.Paused.Settled)
	}
	return nil
}

// settle asks a process again and again until it is settled, for as long as --wait says.
func (f *processFlags) settle(process string, ask func() (pauseAnswer, error)) (pauseAnswer, error) {
	const pause = 100 * time.Millisecond
	a, err := ask()
	deadline := time.Now().Add(f.wait)
	for err == nil && f.wait > 0 && a.Paused != nil && !a.Paused.Settled {
		if time.Now().After(deadline) {
			return a, fmt.Errorf("%s is paused, but not everything is in checkpoints after %s", process, f.wait)
		}
		a, err = ask()
		time.Sleep(pause)
	}
	return a, err
}

func post(ctx context.Context, c *control.Client, base, what string, query url.Values) (pauseAnswer, error) {
	a := pauseAnswer{URL: base}
	err := c.Do(ctx, control.Request{Method: http.MethodPost, Base: base, Path: what, Query: query}, &a)
	if err != nil {
		return a, fmt.Errorf("%s: %w", what, err)
	}
	return a, nil
}
