package main

import (
	"cmp"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/pipeline/record"
)

func newHeadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "heads",
		Short: "See the heads that were trained, and decide which is served",
		Long: "heads reads topics.finetune and topics.heads. A head is named by its id, model/version+headN. A server asks for the one\n" +
			"to serve with `heads list --json` or GET /api/v1/heads: the newest that is pinned, else the newest that is ready and\n" +
			"that nobody has rolled back, else the head that the model came with.",
	}
	group(cmd)
	cmd.AddCommand(&cobra.Command{Use: "list", Short: "List all heads with their state", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runHeadsList(cmd) }}, newHeadsShowCommand())
	for _, o := range []struct{ action, short string }{
		{record.OrderPin, "Serve this head, whatever the verdict on it"},
		{record.OrderRollback, "Do not serve this head, even if it is ready"},
		{record.OrderAuto, "Withdraw a pin or rollback: the verdict on the head decides again"},
	} {
		order := newOrderCommand(o.action, o.short, record.HeadOrder)
		if o.action == record.OrderPin {
			order.Aliases = []string{"publish"}
		}
		cmd.AddCommand(order)
	}
	var dir string
	export := &cobra.Command{Use: "export ID", Short: "Write a head as head.safetensors and head.onnx", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runHeadsExport(cmd, args[0], dir) }}
	export.Flags().StringVarP(&dir, "output", "o", ".", "`directory` to write to")
	cmd.AddCommand(export)
	return cmd
}

func newTrainerListCommand() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List requests and what became of them", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runHeadsList(cmd) }}
}

func newTrainerCancelCommand() *cobra.Command {
	return newOrderCommand("cancel", "Cancel a request, or the job that works on it", record.HeadCancel)
}

// newOrderCommand publishes a person's order about a head or its job.
func newOrderCommand(action, short, kind string) *cobra.Command {
	var why, by string
	cmd := &cobra.Command{Use: action + " ID", Short: short, Args: usageArgs(cobra.ExactArgs(1)), RunE: func(cmd *cobra.Command, args []string) error {
		cfg, err := loadConfig(cmd)
		if err != nil {
			return err
		}
		t, client, err := heads.Read(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		o := record.Order{Schema: 1, Kind: kind, ID: args[0], Action: action,
			By: cmp.Or(by, userName()), Why: why, At: record.Now()}
		if err := t.Allows(o); err != nil {
			o.Refused = err.Error()
			if herr := decisionlog.RecordOrder(cmd.Context(), client, cfg, o); herr != nil {
				cmd.PrintErrln("warning: the history does not have the refused order:", herr)
			}
			return err
		}
		if err := heads.PublishOrder(cmd.Context(), client, cfg, o, func(s string) { cmd.PrintErrln("warning:", s) }); err != nil {
			return err
		}
		if jsonOutput(cmd) {
			return printJSON(cmd, o)
		}
		printf(cmd, "%s %s\n", action, o.ID)
		return nil
	}}
	cmd.Flags().StringVar(&by, "by", "", "`name` of who decides; the user's by default")
	cmd.Flags().StringVar(&why, "why", "", "`reason`, for those who read it later")
	return cmd
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func runHeadsList(cmd *cobra.Command) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	t, _, err := heads.Read(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	v := t.View()
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
	return newTable(cmd.OutOrStdout()).print(lines, len(lines[0]))
}
