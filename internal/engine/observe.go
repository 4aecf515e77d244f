package engine

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/sinks/otlp"
)

// observe passes outputs of the model tasks on within this process: calibrators to the shards, everything to the
// history behind the page, decisions to the log.
func (rt *Engine) observe(ms []pipeline.Message) {
	for i := range ms {
		rt.Show(ms[i].Record)
	}
	for i := range ms {
		rt.logRecord(ms[i].Record)
		if rt.Listen != nil {
			rt.Listen(ms[i])
		}
	}
}

// Show hands a record to the history and the shards, without news for the log.
func (rt *Engine) Show(rec any) {
	if err := rt.showRecord(rec); err != nil {
		rt.Log.Error("record cannot be shown", "type", fmt.Sprintf("%T", rec), "err", err)
	}
}

// logRecord logs alerts and refits; snapshots are not logged.
func (rt *Engine) logRecord(rec any) {
	switch r := rec.(type) {
	case *record.Alert:
		args := []any{"model", r.Model, "version", r.Version, "slice", r.Slice, "rule", r.Rule, "state", r.State,
			"at", r.At, "value", r.Value, "rows", r.Rows}
		if r.InhibitedBy != "" { // nobody is notified of it
			args = append(args, "inhibited_by", r.InhibitedBy)
		}
		rt.Log.Info("alert", args...)
	case *record.Calibrator:
		rt.Log.Info("refit", "model", r.Model, "version", r.Version, "reason", r.Reason, "outcome", r.Outcome, "at",
			r.DecidedAt)
	}
}

func (rt *Engine) showRecord(rec any) error {
	switch r := rec.(type) {
	case *record.Snapshot:
		rt.History.AddSnapshot(*r)
	case *record.Alert:
		rt.History.AddAlert(*r)
	case *record.Calibrator:
		return rt.addCalibrator(r)
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
		return rt.published.Correct(arrowio.ModelKey{Model: r.Model, Version: r.Version}, top)
	case *record.Finetune:
		return rt.Tuning.Request(r)
	case *record.Verdict, *record.Head, *record.Job, *record.Order:
		return rt.Tuning.Record(r)
	}
	return nil
}

func (rt *Engine) addCalibrator(c *record.Calibrator) error {
	rt.History.AddCalibrator(*c)
	if c.Classes > 0 {
		rt.classes.Set(arrowio.ModelKey{Model: c.Model, Version: c.Version},
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
	return rt.published.Put(arrowio.ModelKey{Model: c.Model, Version: c.Version}, p)
}

// settledBy says who has settled a number of classes, in the words of dead letters.
func settledBy(c *record.Calibrator) string {
	if c.By != "" {
		return fmt.Sprintf("as ordered by %s at %s", c.By, c.DecidedAt)
	}
	return fmt.Sprintf("as settled by most rows at %s", c.DecidedAt)
}

// startTracing starts to send spans, if a collector is configured. stop sends those that wait.
func startTracing(rt *Engine) (stop func(), err error) {
	c := rt.Config.Tracing
	if c.Endpoint == "" {
		return func() {}, nil
	}
	of := otlp.Process{Instance: Hostname(), Version: buildinfo.Name()}
	if rt.spans, err = otlp.New(c, of, rt.Log); err != nil {
		return nil, err
	}
	rt.tracer = &tracing.Tracer{Ratio: c.Ratio, Export: rt.spans.Export}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		rt.spans.Run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

// laneOf returns the tracer's lane for a task.
func laneOf(r *KafkaRun, task, group string) *tracing.Lane {
	topics := outputTopics(r.Config)
	return tracing.NewLane(tracing.Settings{Tracer: r.tracer, Observe: r.latencies.Of, Task: task, Group: group,
		Topic: func(stream string) string { return topics[pipeline.Stream(stream)] }})
}

// tracingOver counts the records that are not traced because there are too many.
func tracingOver(t *tracing.Tracer) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "plumbline_traces_over_limit_total",
		Help: "Records that were to be traced and are not, because others of that second are.",
	}, func() float64 { return float64(t.Over()) })
}

// splitterLane returns the tracer's lane for a topic that is split by id.
func splitterLane(r *KafkaRun, u relayed) *tracing.Lane {
	l := laneOf(r, "repartition", u.group)
	in := u.plan.Inputs(&r.Config)
	to := map[string]string{
		string(pipeline.StreamLogits): in[pipeline.Logits],
		string(pipeline.StreamLabels): in[pipeline.Labels],
	}
	l.Topic = func(stream string) string { return to[stream] }
	return l
}
