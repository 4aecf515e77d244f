package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/examples/digits"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/operators/archive"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/service"
)

// The last step of the demo's loop: the model is asked for a new head, which is trained beside the stream, runs as a
// shadow, and is ready or not. Event time runs faster than a trainer trains, so the stream waits, if it must, before
// the first row that the new head is to run on: with that, too, the results are those of --for and --seed alone.

// lead is how far rows may run ahead of what the model tasks have decided, after the shift: more than a row takes
// until its pane is closed (message, lateness, pane), less than from a request to the first row of its head.
const lead = 45 * time.Second

// tune sets the sections of the configuration that ask for a head, run it and train it.
func (p plan) tune(c *config.Config, dir string) {
	t := &c.Trigger
	t.Enabled, t.Rows, t.MinRows, t.ReferenceRows, t.DataRows = true, 1000, 500, 2000, 4000
	t.MaxAccuracyDrop, t.For, t.ShadowAfter, t.Deadline, t.Cooldown = 0.05, 20*time.Second, p.shadowAfter, time.Hour,
		24*time.Hour
	c.Heads.Shadow, c.Heads.MinRows, c.Heads.MaxECERise = true, 500, 0.02
	c.Archive.Directory, c.Archive.Features = filepath.Join(dir, "archive"), archive.FeaturesSingle
	c.Archive.RollTime = 5 * time.Second
	r := &c.Trainer
	r.Name, r.Dir, r.Backend = "demo", filepath.Join(dir, "trainer"), "go"
	r.Heads = []service.ServingHead{
		{Model: modelName, Version: modelVersion, File: filepath.Join(dir, "head.safetensors")},
	}
}

// writeHead writes the network's last layer to where the trainer looks for it.
func writeHead(net *digits.Network, cfg config.Config) error {
	h, err := head.Linear(net.Head())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := artefact.WriteSafetensors(&b, h, nil); err != nil {
		return err
	}
	return os.WriteFile(cfg.Trainer.Heads[0].File, b.Bytes(), 0o644)
}

// newTrainer is what trains in the demo: as `plumbline trainer` does, but with products in Go, whose bits do not depend
// on what is installed.
func newTrainer(cfg config.Config, log *slog.Logger) *service.Recipes {
	l := trainerd.Loader{Config: cfg, Log: log}
	gemm := head.Gonum{}
	return &service.Recipes{Load: l.Load, Plan: trainerd.Plan, GEMM: gemm, Bins: cfg.Stats.Bins, SaveEvery: time.Second,
		Backend: func() (backend.Backend, error) { return backend.Go{GEMM: gemm}, nil }}
}

// hold holds a row back until everything that its event time waits for has been decided.
type hold func(ts time.Time) error

// pollGate is how often a row that is held back is looked at.
const pollGate = 10 * time.Millisecond

// gate is that of a live run.
func (d *runner) gate(ctx context.Context) hold {
	return func(ts time.Time) error {
		if !ts.After(d.plan.Shift) {
			return nil
		}
		for began := time.Now(); ; {
			if !d.story.decided().Before(ts.Add(-lead)) && len(awaited(d.engine.Tuning, ts)) == 0 {
				return nil
			}
			if time.Since(began) > stuck {
				return fmt.Errorf("the row of %s has been held back for %v: no decision, or no head; "+
					"see plumbline.log in --dir", ts.Format(time.TimeOnly), stuck)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollGate):
			}
		}
	}
}

// awaited are the requests whose heads are to run on a row of an event time, and of which nothing has come yet.
func awaited(t *heads.State, ts time.Time) []record.Finetune {
	var out []record.Finetune
	for _, j := range t.Jobs() {
		if from := j.Request.ShadowFrom; from.IsZero() || from.UnixNano() > ts.UnixNano() || !j.Open() {
			continue
		}
		out = append(out, j.Request)
	}
	return out
}

// decided is the event time up to which the story has heard of everything.
func (s *story) decided() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// Finetune is what the result says of the new head.
type Finetune struct {
	RequestedAt    record.Time            `json:"requested_at"`
	Reason         string                 `json:"reason"`
	Why            string                 `json:"why"`
	Accuracy       float64                `json:"accuracy"` // of the judged rows
	Reference      float64                `json:"accuracy_before_shift"`
	Head           string                 `json:"head"`
	ShadowFrom     record.Time            `json:"shadow_from"`
	State          string                 `json:"state"`
	DecidedAt      record.Time            `json:"decided_at,omitzero"`
	Verdict        string                 `json:"verdict,omitempty"`
	ShadowEvidence *record.ShadowEvidence `json:"evidence,omitempty"`
}

// asked tells of a request.
func (s *story) asked(r record.Finetune, at time.Time) {
	if s.request != nil {
		return
	}
	s.request = &r
	s.lines.at(at, "%s requested: %s; recalibration cannot correct that", s.lines.mark("NEW HEAD"), r.Why)
}

// judged tells of a verdict on a head.
func (s *story) judged(v record.Verdict, at time.Time) {
	if v.Kind != record.HeadVerdict || s.request == nil || v.ID != s.request.ID || s.verdict != nil {
		return
	}
	s.verdict = &v
	e := &v.Evidence
	s.lines.at(at, "%s: the shadow %s, on the same %d rows: accuracy %s -> %s, NLL %.4f -> %.4f, ECE %s -> %s; "+
		"the chance that it is no better is at most %.1g, %g suffices",
		s.lines.mark("HEAD "+v.State), v.ShadowVersion, e.Rows, percent(&e.Serving.Accuracy),
		percent(&e.Shadow.Accuracy), e.Serving.NLL, e.Shadow.NLL,
		percent(&e.Serving.ECE), percent(&e.Shadow.ECE), math.Exp(-max(e.LogEBetter, 0)), e.Alpha)
}

// finetune is the result's part.
func (s *story) finetune() *Finetune {
	r := s.request
	if r == nil {
		return nil
	}
	f := &Finetune{RequestedAt: r.DecidedAt, Reason: r.Reason, Why: r.Why, Accuracy: r.Evidence.Accuracy,
		Reference: r.Evidence.ReferenceAccuracy, Head: r.ID,
		ShadowFrom: r.ShadowFrom, State: "undecided"}
	if v := s.verdict; v != nil {
		f.State, f.DecidedAt, f.Verdict, f.ShadowEvidence = v.State, v.DecidedAt, v.Why, &v.Evidence
	}
	return f
}

// trained tells of a result, which has no event time.
func (l *Lines) trained(h *record.Head, took time.Duration) {
	l.plain("%s %s beside the stream in %.1f s: %s", l.mark("TRAINED"), h.ShadowVersion, took.Seconds(),
		ascii.Replace(h.Why))
}

// runTrainer trains for the demo until ctx is done, and tells of the first result.
func (d *runner) runTrainer(ctx context.Context, log *slog.Logger) error {
	err := trainerd.RunWith(ctx, d.cfg, trainerd.Options{}, tellingRunner{newTrainer(d.cfg, log), d.lines}, log)
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errors.New("the trainer ended"), err)
}

// tellingRunner tells what a runner has made.
type tellingRunner struct {
	service.Runner
	lines *Lines
}

// Run implements service.Runner.
func (r tellingRunner) Run(ctx context.Context, t service.Task) error {
	began := time.Now()
	if err := r.Runner.Run(ctx, t); err != nil {
		return err
	}
	res, err := service.ReadResult(t.Result, t.Request)
	if err == nil {
		r.lines.trained(&record.Head{ShadowVersion: t.Request.ShadowVersion, Why: res.Why}, time.Since(began))
	}
	return err
}
