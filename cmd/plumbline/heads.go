package main

import (
	"cmp"
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/texttable"
	"github.com/plumbline/plumbline/pipeline/record"
)

func newHeadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "heads",
		Short: "See the heads that were trained, and decide which is served",
		Long:  help("heads"),
	}
	cli.Group(cmd)
	pin := newOrderCommand(record.OrderPin, "Serve this head, whatever the verdict on it", record.HeadOrder)
	pin.Aliases = []string{"publish"}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List all heads with their state",
			Args:  cli.Args(cobra.NoArgs),
			RunE:  func(cmd *cobra.Command, _ []string) error { return runHeadsList(cmd) },
		},
		&cobra.Command{
			Use:   "show ID",
			Short: "Tell all that is known of one head: request, training, verdict, orders, files",
			Args:  cli.Args(cobra.ExactArgs(1)),
			RunE:  func(cmd *cobra.Command, args []string) error { return runHeadsShow(cmd, args[0]) },
		},
		pin,
		newOrderCommand(record.OrderRollback, "Do not serve this head, even if it is ready", record.HeadOrder),
		newOrderCommand(record.OrderAuto, "Withdraw a pin or rollback: the verdict on the head decides again",
			record.HeadOrder),
		newHeadsExportCommand(),
	)
	return cmd
}

func newHeadsExportCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a head as head.safetensors and head.onnx",
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := readHeads(cmd)
			if err != nil {
				return err
			}
			return t.Export(args[0], dir)
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", ".", "`directory` to write to")
	return cmd
}

// newOrderCommand publishes a person's order about a head or its job.
func newOrderCommand(action, short, kind string) *cobra.Command {
	var why, by string
	cmd := &cobra.Command{
		Use:   action + " ID",
		Short: short,
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.Usagef("--why: must say why")
			}
			return runOrder(cmd, record.Order{Schema: 1, Kind: kind, ID: args[0], Action: action,
				By: cmp.Or(by, userName()), Why: why})
		},
	}
	cmd.Flags().StringVar(&by, "by", "", "`name` of the person who decides (default: the user)")
	cmd.Flags().StringVar(&why, "why", "", "`reason`, kept with the decision")
	return cmd
}

func runOrder(cmd *cobra.Command, o record.Order) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	t, client, err := heads.Read(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	warn := func(args ...any) { cmd.PrintErrln(append([]any{"warning:"}, args...)...) }
	o.At = record.Now()
	if err := t.Allows(o); err != nil {
		o.Refused = err.Error()
		if herr := decisionlog.RecordOrder(cmd.Context(), client, cfg, o); herr != nil {
			warn("the history does not have the refused order:", herr)
		}
		return err
	}
	if err := heads.PublishOrder(cmd.Context(), client, cfg, o, func(s string) { warn(s) }); err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, o)
	}
	printf(cmd, "%s %s\n", o.Action, o.ID)
	return nil
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// readHeads reads the topics of requests and heads to their ends.
func readHeads(cmd *cobra.Command) (*heads.State, error) {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return nil, err
	}
	t, _, err := heads.Read(cmd.Context(), cfg)
	return t, err
}

func runHeadsList(cmd *cobra.Command) error {
	t, err := readHeads(cmd)
	if err != nil {
		return err
	}
	v := t.Current()
	if jsonOutput(cmd) {
		return printJSON(cmd, v)
	}
	lines := [][]string{{"head", "state", "serve", "requested", "why"}}
	for _, h := range v.Heads {
		requested, serve, state := "-", "", h.State
		if h.Request != nil {
			requested = h.Request.DecidedAt.String()
		}
		if h.Serve {
			serve = "yes"
		}
		if h.State == "running" && h.Job != nil {
			state = fmt.Sprintf("running %.0f %% on %s", 100*h.Job.Done, h.Job.Trainer)
		}
		lines = append(lines, []string{h.ID, state, serve, requested, h.Why})
	}
	if len(v.Heads) == 0 {
		printf(cmd, "no heads\n")
		return nil
	}
	return texttable.Print(cmd.OutOrStdout(), lines, len(lines[0]))
}

func runHeadsShow(cmd *cobra.Command, id string) error {
	t, err := readHeads(cmd)
	if err != nil {
		return err
	}
	for _, h := range t.Current().Heads {
		if h.ID == id {
			return printReport(cmd, cmd.OutOrStdout(), &h)
		}
	}
	return fmt.Errorf("%s: there is no such head; plumbline heads list has all", id)
}
