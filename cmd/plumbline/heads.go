package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
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
		{record.OrderAuto, "Take a pin or rollback back: as the verdict says"},
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
		t, client, err := readTuning(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		o := record.Order{Schema: 1, Kind: kind, ID: args[0], Action: action, By: cmp.Or(by, userName()), Why: why, At: pipeline.Format(time.Now().UnixNano())}
		if err := t.allows(o); err != nil {
			o.Refused = err.Error()
			if herr := recordOrder(cmd.Context(), client, cfg, o); herr != nil {
				cmd.PrintErrln("warning: the history does not have the refused order:", herr)
			}
			return err
		}
		if err := publishOrder(cmd.Context(), client, cfg, o, func(s string) { cmd.PrintErrln("warning:", s) }); err != nil {
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

// publishOrder writes an order to the heads topic, and a copy to the decisions topic: one that fails takes nothing back.
func publishOrder(ctx context.Context, client *kafka.Client, cfg config.Config, o record.Order, warn func(string)) error {
	publish, err := headsPublisher(ctx, client, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	value, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := publish(ctx, o.ID, record.HeadKey(o.ID, o.Kind), value); err != nil {
		return err
	}
	if err := recordOrder(ctx, client, cfg, o); err != nil {
		warn(fmt.Sprintf("the order is given, but the history does not have it: %v", err))
	}
	return nil
}

// allows refuses orders about what is not there, or cannot be done.
func (t *tuning) allows(o record.Order) error {
	for _, h := range t.view().Heads {
		if h.ID != o.ID {
			continue
		}
		trained := h.Result != nil && h.Result.Outcome == record.OutcomeTrained
		switch {
		case o.Kind == record.HeadCancel && h.Result != nil:
			return fmt.Errorf("%s: its job has ended: %s", o.ID, h.Result.Outcome)
		case o.Kind == record.HeadOrder && !trained:
			return fmt.Errorf("%s: there is no trained head: it is %s", o.ID, h.State)
		}
		return nil
	}
	return fmt.Errorf("%s: there is no such head; plumbline heads list has all", o.ID)
}

func runHeadsList(cmd *cobra.Command) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	t, _, err := readTuning(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	v := t.view()
	if jsonOutput(cmd) {
		return printJSON(cmd, v)
	}
	lines := [][]string{{"head", "state", "serve", "requested", "why"}}
	for _, h := range v.Heads {
		requested, serve, state := "-", "", h.State
		if h.Request != nil {
			requested = h.Request.DecidedAt
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

// readTuning reads the finetune and heads topics to their end.
func readTuning(ctx context.Context, cfg config.Config) (*tuning, *kafka.Client, error) {
	client, _, err := newKafkaClient(cfg.Kafka)
	if err != nil {
		return nil, nil, err
	}
	t := newTuning(nil, slog.New(slog.DiscardHandler))
	for _, f := range []followed{{cfg.Topics.Finetune, t.request}, {cfg.Topics.Heads, t.record}} {
		if f.topic == "" {
			return nil, nil, errors.New("topics.finetune and topics.heads must be set")
		}
		if err := readTopic(ctx, client, cfg, f); err != nil {
			return nil, nil, err
		}
	}
	return t, client, nil
}

// readTopic hands over all records that a topic has now. What cannot be used is left out, as it is by all others.
func readTopic(ctx context.Context, client *kafka.Client, cfg config.Config, f followed) error {
	n, err := kafkaio.Partitions(ctx, client, f.topic)
	if err != nil {
		return err
	}
	for p := range n {
		if err := readPartition(ctx, client, cfg, f.topic, p, func(rec *pipeline.Record) { _ = f.take(rec.Value) }); err != nil {
			return err
		}
	}
	return nil
}

// readPartition hands over all records that a partition has now; their memory is valid until take returns.
func readPartition(ctx context.Context, client *kafka.Client, cfg config.Config, topic string, p int, take func(*pipeline.Record)) error {
	lo, hi, err := kafkaio.Bounds(ctx, client, topic, p)
	if err != nil || lo == hi {
		return err
	}
	src := kafkaio.NewSource(kafkaio.Spec{Client: client, Topics: map[pipeline.Input]string{pipeline.Panes: topic}, Partition: p, Next: map[pipeline.Input]int64{pipeline.Panes: lo},
		Until: map[pipeline.Input]int64{pipeline.Panes: hi}, MaxBytes: cfg.Kafka.FetchMax, Log: slog.New(slog.DiscardHandler)})
	for err == nil {
		var rec pipeline.Record
		if rec, err = src.Next(ctx); err == nil {
			take(&rec)
		}
	}
	if cerr := src.Close(); !errors.Is(err, io.EOF) {
		return errors.Join(err, cerr)
	}
	return nil
}
