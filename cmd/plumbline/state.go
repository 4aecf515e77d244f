package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/reset"
)

func newStateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "state", Short: "Let tasks whose state is lost begin anew"}
	cli.Group(cmd)
	var o reset.Order
	var accept bool
	again := &cobra.Command{
		Use:   "reset",
		Short: "Say what a task's lost state held, and with --accept-loss let the task begin anew",
		Long:  help("state-reset"),
		Example: "  plumbline state reset -c plumbline.yaml --task shards/3 --by ann --why 'volume lost'\n" +
			"  plumbline state reset -c plumbline.yaml --task shards/3 --by ann --why 'volume lost' --accept-loss",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runStateReset(cmd, o, accept) },
	}
	flags := again.Flags()
	flags.StringVar(&o.Task, "task", "", "`task`: "+reset.Tasks)
	flags.StringVar(&o.From, "from", reset.FromCommitted,
		"`where` to begin: committed (where the lost state stood) or earliest")
	flags.StringVar(&o.By, "by", userName(), "`name` of the person who decides (default: the user)")
	flags.StringVar(&o.Why, "why", "", "`reason`, kept with the decision")
	flags.BoolVar(&accept, "accept-loss", false, "do it")
	cmd.AddCommand(again)
	return cmd
}

func runStateReset(cmd *cobra.Command, o reset.Order, accept bool) error {
	cfg, log, err := setup(cmd)
	if err != nil {
		return err
	}
	switch {
	case o.Task == "":
		return cli.Usagef("--task: must be %s", reset.Tasks)
	case o.From != reset.FromCommitted && o.From != reset.FromEarliest:
		return cli.Usagef("--from %q: must be committed or earliest", o.From)
	case strings.TrimSpace(o.Why) == "":
		return cli.Usagef("--why: must say why")
	case strings.TrimSpace(o.By) == "":
		return cli.Usagef("--by: must name who decides")
	}
	if o.Task != "all" {
		if _, _, err := reset.ParseTask(o.Task); err != nil {
			return cli.UsageError{Err: err}
		}
	}
	plan, err := deployment.New(&cfg, log).Reset(cmd.Context(), o, accept, engine.New(cfg, log).Readable)
	if errors.Is(err, reset.ErrTask) { // how many there are is known now
		return cli.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	return printReport(cmd, cmd.OutOrStdout(), &resetReport{accept, plan})
}

// resetReport is what `plumbline state reset` prints.
type resetReport struct {
	Done  bool            `json:"done"`
	Tasks []*reset.Change `json:"tasks"`
}

// Print writes the report as text.
func (r *resetReport) Print(w io.Writer) error {
	for _, c := range r.Tasks {
		fmt.Fprintf(w, "%s: %s: %s\n", c.Task, c.What, c.Reason)
		if c.Loss == nil {
			continue
		}
		for _, topic := range slices.Sorted(maps.Keys(c.Loss.From)) {
			fmt.Fprintf(w, "  reads %s from offset %d", topic, c.Loss.From[topic])
			if n := c.Loss.Skipped[topic]; n > 0 {
				fmt.Fprintf(w, "; %d offsets before it are gone unread", n)
			}
			fmt.Fprintln(w)
		}
		if what := lostText(c); what != "" {
			fmt.Fprintf(w, "  lost: %s\n", what)
		}
	}
	if !r.Done {
		fmt.Fprintln(w, "nothing was changed: --accept-loss does it")
	}
	return nil
}

// lostText says what goes with a state.
func lostText(c *reset.Change) string {
	if c.What != reset.Begin {
		return ""
	}
	if strings.HasPrefix(c.Task, "models") {
		text := "windows, alarms, calibrators in force and running refits of its models"
		if !c.Loss.Until.IsZero() {
			text += ": all of before " + c.Loss.Until.String()
		}
		return text
	}
	text := "predictions that wait for their label, and rows of label panes that were open"
	if !c.Loss.Since.IsZero() {
		text += ": event times from " + c.Loss.Since.String() + " on"
	}
	return text
}
