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

// controlFlags say which processes, and how to be let in.
type controlFlags struct {
	urls                   []string
	user, passwordFile, ca string
	wait                   time.Duration
}

func (f *controlFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.urls, "url", nil,
		"`address` of a process, such as http://host:8080; may be repeated (default: http.listen)")
	cmd.Flags().StringVar(&f.user, "user", "", "user `name` of http.web_config_file")
	cmd.Flags().StringVar(&f.passwordFile, "password-file", "", "`file` with the password")
	cmd.Flags().StringVar(&f.ca, "ca-file", "", "PEM `file` of the authorities to trust")
}

func newPauseCommand() *cobra.Command {
	var f controlFlags
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
	var f controlFlags
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
func (f *controlFlags) each(cmd *cobra.Command, what string, query url.Values) error {
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
func (f *controlFlags) settle(process string, ask func() (pauseAnswer, error)) (pauseAnswer, error) {
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

// bases are the addresses of the processes to ask: those of --url, else that of the configuration.
func (f *controlFlags) bases(cmd *cobra.Command) ([]string, error) {
	if f.wait < 0 {
		return nil, cli.Usagef("--wait %s: must be 0 or more", f.wait)
	}
	if len(f.urls) == 0 {
		cfg, err := loadConfig(cmd)
		if err != nil {
			return nil, err
		}
		if cfg.HTTP.Listen == "" {
			return nil, cli.Usagef("--url: must name a process such as http://host:8080, for http.listen is empty")
		}
		return []string{"http://" + cfg.HTTP.Listen}, nil
	}
	bases := make([]string, len(f.urls))
	for i, text := range f.urls {
		u, err := url.Parse(text)
		if at := strings.LastIndex(text, "@"); at >= 0 { // outputs and errors name the address
			return nil, cli.Usagef("--url %q: must have no user in it: set --user and --password-file", text[at+1:])
		}
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, cli.Usagef("--url %q: must be http://host:port or https://host:port", text)
		}
		bases[i] = strings.TrimSuffix(text, "/")
	}
	return bases, nil
}

// client is what asks, as the user of the flags.
func (f *controlFlags) client() (*control.Client, error) {
	if (f.user == "") != (f.passwordFile == "") {
		return nil, cli.Usagef("--user %q, --password-file %q: both or neither must be given", f.user,
			f.passwordFile)
	}
	return control.New(f.ca, f.user, f.passwordFile)
}

func post(ctx context.Context, c *control.Client, base, what string, query url.Values) (pauseAnswer, error) {
	a := pauseAnswer{URL: base}
	err := c.Do(ctx, control.Request{Method: http.MethodPost, Base: base, Path: what, Query: query}, &a)
	if err != nil {
		return a, fmt.Errorf("%s: %w", what, err)
	}
	return a, nil
}
