package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// Rows are what a job is trained on.
type Rows struct {
	Train, Valid *data.Set
	// Current is the head that serves, nil where it is not known.
	Current *head.Head
	// Used is where the rows are from and what was left out: part of the evidence.
	Used any
	// Close, where it is not nil, is called after the last use of the rows.
	Close func()
}

// err is why features that stay in files could not be read: rows that were read since then are not numbers.
func (r Rows) err() error {
	for _, s := range []*data.Set{r.Train, r.Valid} {
		if s != nil && s.Stored != nil && s.Stored.Err() != nil {
			return fmt.Errorf("features in files: %w", s.Stored.Err())
		}
	}
	return nil
}

func (r Rows) close() {
	if r.Close != nil {
		r.Close()
	}
}

// Load reads the rows of a request. Errors that wrap ErrHopeless end the job.
type Load func(ctx context.Context, r record.Finetune) (Rows, error)

// Recipes is the built-in Runner: recipes of package recipe, on a backend.
type Recipes struct {
	Load Load
	// Plan gives the trainings of a recipe by its name; auto is set where the best of them is chosen.
	Plan func(name string, seed uint64) (trainings []recipe.Named, auto bool, err error)
	// Backend opens what computes.
	Backend func() (backend.Backend, error)
	GEMM    head.GEMM // of the scores
	Bins    int       // of the ECE in the evidence
	// SaveEvery is how often a checkpoint is written; 0: after every epoch.
	SaveEvery time.Duration
	Log       *slog.Logger
}

// Evidence is the built-in runner's account of a result; both scores are of the validation rows, the newest ones.
type Evidence struct {
	Recipe  string             `json:"recipe"`
	Backend string             `json:"backend"`
	Rows    any                `json:"rows"`
	Before  *metric.Report     `json:"before,omitempty"` // of the current head as it is
	After   *metric.Report     `json:"after"`
	Auto    *recipe.AutoReport `json:"auto"`
	Seconds float64            `json:"seconds"`
}

// Run implements Runner.
func (p *Recipes) Run(ctx context.Context, t Task) error {
	began := time.Now()
	t.Progress("rows", 0, 0)
	rows, err := p.Load(ctx, t.Request)
	if err != nil {
		return err
	}
	defer rows.close()
	in := recipe.Input{Train: rows.Train, Valid: rows.Valid, Current: rows.Current}
	plan, err := p.plan(t.Request, rows.Current != nil)
	if err != nil {
		return err
	}
	b, err := p.Backend()
	if err != nil {
		return err
	}
	job := trainings{Recipes: p, task: t, plan: plan, in: in, backend: b}
	h, auto, err := job.run(ctx)
	if err = cmp.Or(rows.err(), err); err != nil {
		return err
	}
	ev := Evidence{Recipe: t.Request.Recipe, Backend: b.Name(), Rows: rows.Used, Auto: &auto}
	if ev.After, err = p.score(h, rows.Valid); err != nil {
		return err
	}
	if rows.Current != nil {
		if ev.Before, err = p.score(rows.Current, rows.Valid); err != nil {
			return err
		}
	}
	if err := rows.err(); err != nil {
		return err
	}
	ev.Seconds = time.Since(began).Seconds()
	return p.write(t, h, &auto, ev)
}

// plan is the trainings of a request. Where no head serves they start from a fresh one.
func (p *Recipes) plan(r record.Finetune, served bool) ([]recipe.Named, error) {
	plan, _, err := p.Plan(r.Recipe, r.Seed)
	if err != nil {
		return nil, fmt.Errorf("%w: recipe %q: %w", ErrHopeless, r.Recipe, err)
	}
	if served {
		return plan, nil
	}
	for i := range plan {
		if plan[i].Config.Head == recipe.HeadCurrent {
			plan[i].Config.Head = recipe.HeadLinear
		}
		plan[i].Config.CDF = recipe.CDFBatch // there is no head whose scores could be counted
	}
	return plan, nil
}

// write leaves the result.
func (p *Recipes) write(t Task, h *head.Head, auto *recipe.AutoReport, ev Evidence) error {
	rep := Report{Outcome: record.OutcomeTrained}
	rep.Why = fmt.Sprintf("%s: validation NLL %.4f, accuracy %.4f of %d rows",
		auto.Chosen, ev.After.NLL, ev.After.Accuracy, ev.After.N)
	if d := auto.OverCurrent; d != nil {
		rep.Why += fmt.Sprintf("; the best less the current head %+.4f ± %.4f (standard error of %d blocks of time)",
			d.Mean, d.SE, auto.Blocks)
	}
	if !auto.Changed {
		rep.Outcome, h = record.OutcomeUnchanged, nil
	}
	var err error
	if rep.Evidence, err = json.Marshal(ev); err != nil {
		return err
	}
	return WriteResult(t.Result, rep, h)
}

// trainings are those of one task.
type trainings struct {
	*Recipes
	task    Task
	plan    []recipe.Named
	in      recipe.Input
	backend backend.Backend
	done    int // trainings before the one at hand
}

// run runs the trainings, each from its checkpoint where there is one. One training too gets its temperature, and is
// compared with the current head.
func (t *trainings) run(ctx context.Context) (*head.Head, recipe.AutoReport, error) {
	one := func(ctx context.Context, c recipe.Named) (*head.Head, recipe.Report, error) {
		defer func() { t.done++ }()
		return t.one(ctx, c)
	}
	h, r, err := recipe.RunAutoWith(ctx, t.plan, t.in, one)
	for i := range r.Tried {
		if rep := r.Tried[i].Report; rep != nil {
			rep.Epochs = thin(rep.Epochs)
		}
	}
	return h, r, err
}

// progress reports how far the training at hand is.
func (t *trainings) progress(c recipe.Named, epochs []recipe.EpochReport) {
	nll := 0.0
	if len(epochs) > 0 {
		nll = epochs[len(epochs)-1].Valid.NLL
	}
	of := float64(len(epochs)) / float64(c.Config.Epochs)
	t.task.Progress(c.Name, (float64(t.done)+of)/float64(len(t.plan)), nll)
}

// maxCurve is how many points of a curve are in the evidence.
const maxCurve = 50

func thin(e []recipe.EpochReport) []recipe.EpochReport {
	if len(e) <= maxCurve {
		return e
	}
	var out []recipe.EpochReport
	for i := range maxCurve {
		out = append(out, e[(i+1)*len(e)/maxCurve-1])
	}
	return out
}

// one runs a training to its end, with checkpoints.
func (t *trainings) one(ctx context.Context, c recipe.Named) (*head.Head, recipe.Report, error) {
	in := t.in
	in.Stop = ctx.Done()
	tr, err := recipe.New(c.Config, in, t.backend)
	if err != nil {
		return nil, recipe.Report{}, err
	}
	defer func() { _ = tr.Close() }()
	file := filepath.Join(t.task.Dir, "checkpoint-"+dirName(c.Name))
	if err := t.restore(tr, file); err != nil {
		return nil, recipe.Report{}, err
	}
	saved := time.Now()
	for !tr.Done() {
		if err := ctx.Err(); err != nil {
			return nil, tr.Summary(), err
		}
		if err := tr.Step(); err != nil {
			return nil, tr.Summary(), cmp.Or(ctx.Err(), err)
		}
		t.progress(c, tr.Summary().Epochs)
		if !tr.Done() && time.Since(saved) < t.SaveEvery {
			continue
		}
		saved = time.Now()
		text, err := tr.Checkpoint()
		if err != nil {
			return nil, tr.Summary(), err
		}
		if err := durable.WriteFile(file, text); err != nil {
			return nil, tr.Summary(), err
		}
	}
	return tr.Head(), tr.Summary(), nil
}

func (p *Recipes) log() *slog.Logger { return cmp.Or(p.Log, slog.New(slog.DiscardHandler)) }

// restore goes on from a checkpoint. One that is damaged, or that does not fit, because rows or settings have changed
// since, is removed, and the training begins anew.
func (t *trainings) restore(tr *recipe.Training, file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = tr.Restore(text)
	}
	if errors.Is(err, recipe.ErrCheckpoint) {
		t.log().Warn("checkpoint cannot be used: the training begins anew", "job", t.task.Request.ID, "file", file,
			"err", err)
		return os.Remove(file)
	}
	return err
}

func (p *Recipes) score(h *head.Head, s *data.Set) (*metric.Report, error) {
	rows := metric.Rows{K: h.K(), F32: logits(h, s, p.GEMM), Labels: s.Y}
	r, err := metric.Evaluate(rows, metric.Options{Bins: p.Bins, Resamples: 200})
	return &r, err
}

// logits are the n×K logits of a set.
func logits(h *head.Head, s *data.Set, gemm head.GEMM) []float32 {
	const rows = 1024 // at a time
	pass, z := head.NewPass(h, rows, gemm), make([]float32, 0, s.N()*h.K())
	var scratch []float32
	for from := 0; from < s.N(); from += rows {
		n := min(rows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		z = append(z, pass.Forward(h, scratch, n)...)
	}
	return z
}
