package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/inspect"
	"github.com/plumbline/plumbline/pipeline"
)

func newInspectCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "inspect", Short: "Print what a checkpoint or a pane message holds"}
	cli.Group(cmd)
	cmd.AddCommand(&cobra.Command{
		Use:   "checkpoint FILE",
		Short: "Print sections, offsets, watermark, counts and waiting pane messages of a checkpoint",
		Long:  help("inspect-checkpoint"),
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return inspectCheckpoint(cmd, args[0]) },
	}, &cobra.Command{
		Use:   "pane FILE",
		Short: "Print the cells of a pane message, the value of a record of the panes topic",
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return inspectPane(cmd, args[0]) },
	})
	return cmd
}

func inspectCheckpoint(cmd *cobra.Command, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := pipeline.InspectCheckpoint(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, info)
	}
	printf(cmd, "checkpoint, %d bytes, every CRC is right\n", info.Bytes)
	for _, s := range info.Sections {
		printf(cmd, "  %-24s version %d %12d bytes\n", s.Name, s.Version, s.Bytes)
	}
	for _, f := range info.Files {
		printf(cmd, "  file %s %12d bytes\n", f.Name, f.Bytes)
	}
	for _, in := range slices.Sorted(maps.Keys(info.Offsets)) {
		printf(cmd, "next offset of %-8s %12d\n", in, info.Offsets[in])
	}
	if info.Watermark != "" {
		printf(cmd, "watermark %s\n", info.Watermark)
	}
	for _, name := range slices.Sorted(maps.Keys(info.Counts)) {
		printf(cmd, "count %-32s %12d\n", name, info.Counts[name])
	}
	for _, p := range info.Outbox {
		printf(cmd, "to panes partition %d: %s\n", p.Partition, paneLine(p))
	}
	return nil
}

func paneLine(p pipeline.PaneInfo) string {
	from := fmt.Sprintf("shard %d of %d, message %d", p.Shard, p.Of, p.Seq)
	if p.Closed != "" {
		idle := ""
		if p.Idle {
			idle = ", idle"
		}
		return fmt.Sprintf("%s: label panes before %s are complete%s", from, p.Closed, idle)
	}
	late := ""
	if p.Late {
		late = ", late"
	}
	return fmt.Sprintf("%s: label pane %s of model %q, %d cells%s", from, p.LabelPane, p.Model, p.Cells, late)
}

func inspectPane(cmd *cobra.Command, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	report, err := inspect.Pane(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, report)
	}
	printf(cmd, "%s\n", paneLine(report.PaneInfo))
	for _, c := range report.Cells {
		printf(cmd, "  version %q slice %q K %d predictions of %s: %d seen, %d labelled", c.Version, c.Slice, c.K,
			c.PredictionPane, c.Seen, c.Labelled)
		if c.ECE != nil {
			printf(cmd, ", accuracy %.4f, confidence %.4f, ECE %.4f", *c.Accuracy, *c.Confidence, *c.ECE)
		}
		printf(cmd, ", %d bytes\n", c.Bytes)
	}
	return nil
}
