package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

func newCalibratorsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibrators",
		Short: "List a model's calibrators and decisions; pin, publish, roll back",
		Long: "calibrators lists the decisions about a model's calibrators, and gives orders. An order goes through a running\n" +
			"process (http.control: true) to the panes topic; the model task executes it at the end of the last closed pane.",
	}
	group(cmd)
	cmd.AddCommand(newCalibratorsList(), newDecisionCommand(pipeline.ActionPin, "Keep what is in force, or put --revision in force and keep it: no refit, no rollback"),
		newDecisionCommand(pipeline.ActionUnpin, "Withdraw a pin: allow refits and rollbacks again"),
		newDecisionCommand(pipeline.ActionRollback, "Put the calibrator before the one in force, or --revision, in force again"),
		newDecisionCommand(pipeline.ActionPublish, "Put the calibrator of FILE in force, as `plumbline fit` writes it"))
	return cmd
}

// orderFlags are those of an order and of the process that it goes through.
type orderFlags struct {
	controlFlags
	version, by, why string
	revision         int
}

func newDecisionCommand(action, short string) *cobra.Command {
	var f orderFlags
	use, args := action+" MODEL", 1
	if action == pipeline.ActionPublish {
		use, args = action+" FILE MODEL", 2
	}
	cmd := &cobra.Command{Use: use, Short: short, Args: usageArgs(cobra.ExactArgs(args))}
	f.add(cmd)
	cmd.Flags().StringVar(&f.version, "model-version", "", "`version` of the model, where it has several")
	cmd.Flags().StringVar(&f.why, "why", "", "`reason`, kept with the decision")
	cmd.Flags().StringVar(&f.by, "by", userName(), "`name` of who decides, where no --user says so")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait so long for what the model task makes of it, and fail where that is a refusal; 0: not")
	if action == pipeline.ActionPin || action == pipeline.ActionRollback {
		cmd.Flags().IntVar(&f.revision, "revision", 0, "`revision` to put in force")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.why = strings.TrimSpace(f.why); f.why == "" {
			return usageErrorf("--why: must say why")
		}
		if cmd.Flags().Changed("revision") && f.revision < 1 {
			return usageErrorf("--revision %d: must be a whole number from 1", f.revision)
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
	return cmd
}

func (f *orderFlags) order(cmd *cobra.Command, action, model string, body []byte) error {
	q := url.Values{"why": {f.why}, "by": {f.by}}
	if f.version != "" {
		q.Set("version", f.version)
	}
	if f.revision != 0 {
		q.Set("revision", strconv.Itoa(f.revision))
	}
	var before map[string]bool
	if f.wait > 0 {
		var err error
		if before, err = f.decided(cmd, model); err != nil {
			return err
		}
	}
	var a engine.OrderAnswer
	if err := f.ask(cmd, control.Request{Method: http.MethodPost, Path: "models/" + url.PathEscape(model) + "/calibrators/" + action, Query: q, Body: body}, &a); err != nil {
		return err
	}
	if f.wait > 0 {
		return f.await(cmd, &a, before)
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, a)
	}
	printf(cmd, "%s of %s/%s by %s is on its way (order %s): plumbline calibrators list %s\n", a.Action, a.Model, a.Version, a.By, a.ID, model)
	return nil
}

func newCalibratorsList() *cobra.Command {
	var f orderFlags
	limit := 100
	cmd := &cobra.Command{Use: "list MODEL", Short: "Decisions about a model's calibrators, oldest first", Args: usageArgs(cobra.ExactArgs(1))}
	f.add(cmd)
	cmd.Flags().StringVar(&f.version, "model-version", "", "`version` of the model; default: all")
	cmd.Flags().IntVar(&limit, "limit", limit, "newest so many")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 1 {
			return usageErrorf("--limit %d: must be 1 or more", limit)
		}
		q := url.Values{"model": {args[0]}, "limit": {strconv.Itoa(limit)}}
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
			printf(cmd, "no decisions about %s\n", strings.TrimSuffix(args[0]+"/"+f.version, "/"))
		}
		for _, c := range a.Calibrators {
			who := ""
			if c.By != "" || c.Why != "" {
				who = fmt.Sprintf(" (%s: %s)", c.By, c.Why)
			}
			pinned := ""
			if c.Pinned {
				pinned = " pinned"
			}
			if e := &c.Evidence; e.FitDigest != "" {
				who += fmt.Sprintf("\n    fitted on %d rows, %s to %s, begun %s: %s, by %s", e.FitRows, e.FitFrom, e.FitTo, e.FitBegan, e.FitDigest, c.Build)
			}
			printf(cmd, "%s  %s/%s  revision %d%s  %s  %s%s\n", c.DecidedAt, c.Model, c.Version, c.Revision, pinned, c.Reason, c.Outcome, who)
		}
		return nil
	}
	return cmd
}

// ask sends a request to the process of the flags, the first where there are several.
func (f *controlFlags) ask(cmd *cobra.Command, r control.Request, answer any) error {
	bases, err := f.bases(cmd)
	if err != nil {
		return err
	}
	r.Base = bases[0]
	client, err := f.client()
	if err != nil {
		return err
	}
	return client.Do(cmd.Context(), r, answer)
}
