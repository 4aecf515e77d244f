package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// view is what the records that model tasks, people and trainers have written say now: shards apply what is in it, the
// page shows it. Calibrators and heads are those of the deployment, the rest of the tasks of this process.
type view struct {
	log       *slog.Logger
	published *apply.Published
	classes   *validate.Ordered // numbers of classes that were settled for all shards
	History   *history.History
	Tuning    *heads.State
	Heads     *shadow.Heads          // that shards run as shadows
	Listen    func(pipeline.Message) // sees every output of the model tasks; nil = nobody
	following atomic.Bool            // the calibrators topic has not been read to its end yet
	onTopic   onTopic                // of calibrators
	alerts    alertsTopic
}

func newView(cfg *config.Config, log *slog.Logger) *view {
	v := &view{log: log, published: apply.NewPublished(forgetAfter(cfg)), classes: validate.NewOrdered(),
		History: history.New(history.Config{}), Heads: shadow.NewHeads(cfg.Heads)}
	v.Tuning = heads.New(v.Heads, log)
	return v
}

// observe passes outputs of the model tasks on within this process: calibrators to the shards, everything to the
// history behind the page, decisions to the log.
func (v *view) observe(ms []pipeline.Message) {
	for i := range ms {
		v.Show(ms[i].Record)
	}
	for i := range ms {
		v.logRecord(ms[i].Record)
		if v.Listen != nil {
			v.Listen(ms[i])
		}
	}
}

// Show hands a record to the history and the shards, without news for the log.
func (v *view) Show(rec any) {
	if err := v.showRecord(rec); err != nil {
		v.log.Error("record cannot be shown", "type", fmt.Sprintf("%T", rec), "err", err)
	}
}

// logRecord logs alerts and refits; snapshots are not logged.
func (v *view) logRecord(rec any) {
	switch r := rec.(type) {
	case *record.Alert:
		args := []any{"model", r.Model, "version", r.Version, "slice", r.Slice, "rule", r.Rule, "state", r.State,
			"at", r.At, "value", r.Value, "rows", r.Rows}
		if r.InhibitedBy != "" { // nobody is notified of it
			args = append(args, "inhibited_by", r.InhibitedBy)
		}
		v.log.Info("alert", args...)
	case *record.Calibrator:
		v.log.Info("refit", "model", r.Model, "version", r.Version, "reason", r.Reason, "outcome", r.Outcome, "at",
			r.DecidedAt)
	}
}

func (v *view) showRecord(rec any) error {
	switch r := rec.(type) {
	case *record.Snapshot:
		v.History.AddSnapshot(*r)
	case *record.Alert:
		v.History.AddAlert(*r)
	case *record.Calibrator:
		return v.addCalibrator(r)
	case *record.TopCorrection:
		if r.EffectiveFrom.IsZero() {
			return fmt.Errorf("correction of revision %d of %s/%s: effective_from is no time", r.Revision, r.Model,
				r.Version)
		}
		top := apply.Top{Revision: r.Revision, From: r.EffectiveFrom.UnixNano(),
			Correction: calibrator.Correction{Power: r.Power,
				TopCorrection: calibrator.TopCorrection{Slope: r.Slope, Intercept: r.Intercept}}}
		for _, x := range r.Apart {
			top.Correction.Apart = append(top.Correction.Apart, calibrator.ClassCorrection{Class: x.Class,
				TopCorrection: calibrator.TopCorrection{Slope: x.Slope, Intercept: x.Intercept}})
		}
		return v.published.Correct(arrowio.ModelKey{Model: r.Model, Version: r.Version}, top)
	case *record.Finetune:
		return v.Tuning.Request(r)
	case *record.Verdict, *record.Head, *record.Job, *record.Order:
		return v.Tuning.Record(r)
	}
	return nil
}

func (v *view) addCalibrator(c *record.Calibrator) error {
	v.History.AddCalibrator(*c)
	if c.Classes > 0 {
		v.classes.Set(arrowio.ModelKey{Model: c.Model, Version: c.Version},
			validate.Order{Classes: c.Classes, Origin: settledBy(c)})
	}
	canary := c.Stage == record.StageCanary
	if !c.Published && !canary {
		return nil
	}
	if c.EffectiveFrom.IsZero() {
		return fmt.Errorf("calibrator %d of %s/%s: effective_from is no time", c.Revision, c.Model, c.Version)
	}
	p := apply.Publication{Revision: c.Revision, From: c.EffectiveFrom.UnixNano(), Encoded: c.Calibrator,
		Canary: canary, Share: c.Share}
	if canary && c.Share == 0 {
		p.Encoded = nil // its end
	}
	return v.published.Put(arrowio.ModelKey{Model: c.Model, Version: c.Version}, p)
}

// settledBy says who has settled a number of classes, in the words of dead letters.
func settledBy(c *record.Calibrator) string {
	if c.By != "" {
		return fmt.Sprintf("as ordered by %s at %s", c.By, c.DecidedAt)
	}
	return fmt.Sprintf("as settled by most rows at %s", c.DecidedAt)
}

// teeSink writes to Kafka first, then shows: what the page shows is durable.
type teeSink struct {
	pipeline.Sink
	view *view
}

// Write implements pipeline.Sink.
func (s teeSink) Write(ctx context.Context, ms []pipeline.Message) error {
	err := s.Sink.Write(ctx, ms)
	var refused *pipeline.RefusedError
	if err == nil || errors.As(err, &refused) { // what is refused for good is shown here only
		s.view.observe(ms)
	}
	return err
}
