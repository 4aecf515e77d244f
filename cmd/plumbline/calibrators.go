package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

func newCalibratorsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibrators",
		Short: "List a model's calibrators and decisions; pin, publish, roll back",
		Long:  help("calibrators"),
	}
	cli.Group(cmd)
	cmd.AddCommand(
		newCalibratorsList(),
		newDecisionCommand(pipeline.ActionPin,
			"Keep what is in force, or put --revision in force and keep it: no refit, no rollback"),
		newDecisionCommand(pipeline.ActionUnpin, "Withdraw a pin: allow refits and rollbacks again"),
		newDecisionCommand(pipeline.ActionRollback,
			"Put the calibrator before the one in force, or --revision, in force again"),
		newDecisionCommand(pipeline.ActionPublish,
			"Put the calibrator of FILE in force, as `plumbline fit` writes it"),
	)
	return cmd
}

// orderFlags are those of an order and of the process that it goes through.
type orderFlags struct {
	processFlags
	version, by, why  string
	revision, classes int
}

func newDecisionCommand(action, short string) *cobra.Command {
	var f orderFlags
	use, args := action+" MODEL", 1
	if action == pipeline.ActionPublish {
		use, args = action+" FILE MODEL", 2
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cli.Args(cobra.ExactArgs(args)),
		RunE:  func(cmd *cobra.Command, args []string) error { return runDecision(cmd, action, args, f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.version, "model-version", "", "`version` of the model")
	flags.StringVar(&f.why, "why", "", "`reason`, kept with the decision")
	flags.StringVar(&f.by, "by", userName(), "`name` of the person who decides (default: the user)")
	flags.DurationVar(&f.wait, "wait", 0,
		"wait this long for the result; fail if it is a refusal")
	if action == pipeline.ActionPin || action == pipeline.ActionRollback {
		flags.IntVar(&f.revision, "revision", 0, "`revision` to put in force")
	}
	return cmd
}

// runDecision has args MODEL, or FILE and MODEL.
func runDecision(cmd *cobra.Command, action string, args []string, f orderFlags) error {
	if f.why = strings.TrimSpace(f.why); f.why == "" {
		return cli.Usagef("--why: must say why")
	}
	if cmd.Flags().Changed("revision") && f.revision < 1 {
		return cli.Usagef("--revision %d: must be a whole number from 1", f.revision)
	}
	var body []byte
	if action == pipeline.ActionPublish {
		c, err := offline.ReadCalibrator(args[0])
		if err != nil {
			return err
		}
		if body, err = calibrator.Encode(c); err != nil {
			return err
		}
	}
	return f.order(cmd, action, args[len(args)-1], body)
}

func (f *orderFlags) order(cmd *cobra.Command, action, model string, body []byte) error {
	process, err := f.process(cmd)
	if err != nil {
		return err
	}
	o := control.Order{Action: action, Model: model, Version: f.version, Revision: f.revision, Classes: f.classes,
		By: f.by, Why: f.why, Calibrator: body}
	if f.wait > 0 {
		d, err := process.Await(cmd.Context(), o, f.wait)
		if err != nil {
			return err
		}
		if jsonOutput(cmd) {
			return printJSON(cmd, d.JSON)
		}
		printf(cmd, "%s/%s: %s, revision %d from %s on\n", d.Model, d.Version, d.Outcome, d.Revision, d.EffectiveFrom)
		return nil
	}
	a, err := process.Send(cmd.Context(), o)
	if err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, a)
	}
	printf(cmd, "%s of %s/%s by %s is on its way (order %s): plumbline calibrators list %s\n", a.Action, a.Model,
		a.Version, a.By, a.ID, model)
	return nil
}

func newCalibratorsList() *cobra.Command {
	var f orderFlags
	limit := 100
	cmd := &cobra.Command{
		Use:   "list MODEL",
		Short: "Decisions about a model's calibrators, oldest first",
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return f.list(cmd, args[0], limit) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.version, "model-version", "", "`version` of the model")
	cmd.Flags().IntVar(&limit, "limit", limit, "newest so many")
	return cmd
}

func (f *orderFlags) list(cmd *cobra.Command, model string, limit int) error {
	if limit < 1 {
		return cli.Usagef("--limit %d: must be 1 or more", limit)
	}
	q := url.Values{"model": {model}, "limit": {strconv.Itoa(limit)}}
	if f.version != "" {
		q.Set("version", f.version)
	}
	var a struct {
		Calibrators []record.Calibrator `json:"calibrators"`
	}
	if err := f.ask(cmd, control.Request{Method: http.MethodGet, Path: "calibrators", Query: q}, &a); err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, a)
	}
	if len(a.Calibrators) == 0 {
		printf(cmd, "no decisions about %s\n", strings.TrimSuffix(model+"/"+f.version, "/"))
	}
	for i := range a.Calibrators {
		printDecision(cmd, &a.Calibrators[i])
	}
	return nil
}

// signed is who decided, and why, as far as it is known: a trainer gives no reason for its head.
func signed(by, why string) string {
	switch {
	case by == "" && why == "":
		return ""
	case why == "":
		return " (" + by + ")"
	}
	return fmt.Sprintf(" (%s: %s)", by, why)
}

func printDecision(cmd *cobra.Command, c *record.Calibrator) {
	pinned := ""
	if c.Pinned {
		pinned = " pinned"
	}
	printf(cmd, "%s  %s/%s  revision %d%s  %s  %s%s\n", c.DecidedAt, c.Model, c.Version, c.Revision, pinned, c.Reason,
		c.Outcome, signed(c.By, c.Why))
	if e := &c.Evidence; e.FitDigest != "" {
		printf(cmd, "    fitted on %d rows, %s to %s, begun %s: %s, by %s\n", e.FitRows, e.FitFrom, e.FitTo, e.FitBegan,
			e.FitDigest, c.Build)
	}
}
