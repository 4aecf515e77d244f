package recipe

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
	"github.com/plumbline/plumbline/trainer/variant"
)

// Input is what a training is run on.
type Input struct {
	Train, Valid *data.Set
	// Current is the head that serves; required where the recipe starts from it.
	Current *head.Head
	// Mixed says that validation rows are of no later time than training rows, as where they were drawn at random.
	// Then a gain on them cannot be of their time alone, and training rows have no say about it.
	Mixed bool
	// CDF has a stream's counts of the CSF for the loss au, or is nil: then it counts its mini-batches.
	CDF []float64
	// Stop, where it is closed, ends a step with backend.ErrStopped in the middle of its epoch.
	Stop <-chan struct{}
}

// Training is a recipe on its way. One goroutine uses it; the caller closes it.
type Training struct {
	cfg     Config
	in      Input
	problem backend.Problem
	session backend.Session
	variant *variant.Session // the session where the recipe has a method
	scaling *scaling         // of the features that the session has; nil: as they are
	report  Report

	main, held []int32 // training rows of the first and of the interleaved loss
	q          float64
	step       uint32      // mini-batches so far
	best       [][]float32 // parameters
	bestNLL    float64
	bestScale  float32
	of         uint64 // fingerprint, 0 until it is needed
}

// New prepares a training on a backend.
func New(cfg Config, in Input, b backend.Backend) (*Training, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if in.Train == nil || in.Valid == nil {
		return nil, fmt.Errorf("training and validation rows are required")
	}
	h, err := startHead(cfg, in)
	if err != nil {
		return nil, err
	}
	if cfg.CDF == CDFRows && in.CDF == nil {
		if in.CDF, err = scoreCounts(cfg, in); err != nil {
			return nil, err
		}
	}
	t := &Training{cfg: cfg, in: in, main: data.Rows(in.Train.N())}
	train, valid := in.Train, in.Valid
	if h.Check() == nil && h.D() == train.D && train.Check() == nil && valid.Check() == nil { // else open says why not
		t.scaling = scalingOf(train, valid)
	}
	if t.scaling != nil {
		train, valid = t.scaling.set(train), t.scaling.set(valid)
		if cfg.Head == HeadCurrent {
			t.scaling.to(h)
		}
	}
	t.problem = backend.Problem{
		Train:  train,
		Eval:   []*data.Set{valid},
		Head:   h,
		Losses: []string{cfg.Loss},
		CDF:    in.CDF,
		Batch:  cfg.Batch,
	}
	if v := cfg.Interleave; v != nil {
		t.problem.Losses = append(t.problem.Losses, v.Loss)
		t.problem.Batch = max(t.problem.Batch, v.batch(cfg))
		if err := t.hold(); err != nil {
			return nil, err
		}
	}
	if b, err = t.open(b); err != nil {
		return nil, err
	}
	if err := t.begin(b.Name()); err != nil {
		return nil, errors.Join(err, t.session.Close())
	}
	return t, nil
}

// open begins the session and returns the backend that has it: the processor where only that can.
func (t *Training) open(b backend.Backend) (_ backend.Backend, err error) {
	if t.cfg.Method != "" || t.cfg.Peel > 0 {
		host, ok := b.(backend.Go)
		if b = host; !ok {
			b = backend.Go{}
		}
		if t.cfg.Method != "" {
			t.variant, err = variant.Open(t.problem, variant.Config{
				Method: t.cfg.Method,
				KL:     t.cfg.KL,
				Width:  t.cfg.Width,
				Delta:  t.cfg.Delta,
				Seed:   t.cfg.Seed,
			}, host.GEMM)
			t.session = t.variant
			return b, err
		}
	}
	t.session, err = b.Open(t.problem)
	return b, err
}

// trained is how many layers an epoch, from 0, changes; 0 is all.
func (t *Training) trained(epoch int) int {
	layers := len(t.problem.Head.Layers)
	left := layers
	for j := 1; t.cfg.Peel > 0 && j < layers; j++ {
		if float64(epoch) >= math.Floor(math.Pow(float64(j)/float64(layers), t.cfg.Peel)*float64(t.cfg.Epochs)) {
			left = layers - j
		}
	}
	return left % layers
}

func startHead(cfg Config, in Input) (*head.Head, error) {
	d, k := in.Train.D, in.Train.K
	switch cfg.Head {
	case HeadCurrent:
		if in.Current == nil {
			return nil, fmt.Errorf("head %q, but no current head is given", cfg.Head)
		}
		return in.Current.Clone(), nil
	case HeadLinear:
		return head.FreshLinear(d, k, cfg.Seed), nil
	}
	width := cfg.Width
	if width == 0 {
		width = min(d, 512)
	}
	return head.Bottleneck(d, width, k, cfg.Seed), nil
}

// hold draws the rows of the interleaved loss.
func (t *Training) hold() error {
	share, rows := t.cfg.Interleave.share(), len(t.main)
	n := int(share*float64(rows) + 0.5)
	if n < 1 || n >= rows {
		return fmt.Errorf("interleave: share %v of %d rows is %d, allowed 1..%d", share, rows, n, rows-1)
	}
	src := philox.Source{Stream: philox.Stream{Seed: t.cfg.Seed, Purpose: philox.Split}}
	src.Shuffle(t.main)
	t.main, t.held = t.main[n:], t.main[:n:n]
	return nil
}

func (t *Training) begin(name string) error {
	if m := t.cfg.MaCCal; m != nil {
		t.q = m.Start
	}
	before, err := t.session.Measure(0, t.inference())
	if err != nil {
		return fmt.Errorf("initial head: %w", err)
	}
	t.report = Report{
		Config:  t.cfg,
		Backend: name,
		Train:   t.in.Train.N(),
		Valid:   t.in.Valid.N(),
		Held:    len(t.held),
		Scaled:  t.scaling != nil,
		Before:  before,
	}
	if t.cfg.Tempered {
		if t.report.BeforeTempered, err = t.tempered(); err != nil {
			return fmt.Errorf("initial head: %w", err)
		}
		return t.keep(0, t.report.BeforeTempered)
	}
	return t.keep(0, before.NLL)
}

// tempered is the validation NLL after the best temperature.
func (t *Training) tempered() (float64, error) {
	z := make([]float32, t.in.Valid.N()*t.in.Valid.K)
	if err := t.session.Logits(0, t.inference(), z); err != nil {
		return 0, err
	}
	_, r, err := calibrator.FitTemperature(calibrator.NewData(z, t.in.Valid.K, t.in.Valid.Y, nil), calibrator.Options{})
	return r.NLLAfter, err
}

// keep notes the head as the best so far.
func (t *Training) keep(epoch int, nll float64) error {
	st, err := t.session.State()
	if err != nil {
		return err
	}
	t.best, t.bestNLL, t.bestScale, t.report.Best = st.Params, nll, t.inference().Scale, epoch
	return nil
}

// inference is how the head is seen outside training.
func (t *Training) inference() backend.Weights {
	if m := t.cfg.MaCCal; m != nil && m.Masks && m.Scale {
		return backend.Weights{Scale: float32(t.q)}
	}
	return backend.Weights{Scale: 1}
}

// Done is whether no epoch is left.
func (t *Training) Done() bool { return len(t.report.Epochs) >= t.cfg.Epochs || t.report.Stopped }

// Summary is the report so far.
func (t *Training) Summary() Report { return t.report }

// Step runs an epoch, its measurements and the controller.
func (t *Training) Step() error {
	e := len(t.report.Epochs)
	if t.Done() {
		return fmt.Errorf("epoch %d: training is done", e+1)
	}
	r := EpochReport{Epoch: e + 1, LR: t.cfg.LR * t.cfg.Schedule.At(e, t.cfg.Epochs)}
	if err := t.train(&r, e); err != nil {
		return fmt.Errorf("epoch %d: %w", e+1, err)
	}
	var err error
	if r.Valid, err = t.session.Measure(0, t.inference()); err != nil {
		return fmt.Errorf("epoch %d: validation: %w", e+1, err)
	}
	nll := r.Valid.NLL
	if t.cfg.Tempered {
		if r.Tempered, err = t.tempered(); err != nil {
			return fmt.Errorf("epoch %d: validation: %w", e+1, err)
		}
		nll = r.Tempered
	}
	// A fresh head's first epoch always counts: its initial weights are random.
	if nll < t.bestNLL || e == 0 && t.cfg.Head != HeadCurrent || t.cfg.KeepLast {
		if err := t.keep(e+1, nll); err != nil {
			return err
		}
	}
	if err := t.control(&r); err != nil {
		return fmt.Errorf("epoch %d: measurement: %w", e+1, err)
	}
	t.report.Epochs = append(t.report.Epochs, r)
	sinceBest := e + 1 - t.report.Best
	t.report.Stopped = t.cfg.Patience > 0 && !t.cfg.KeepLast && sinceBest >= t.cfg.Patience && e+1 < t.cfg.Epochs
	return nil
}

func (t *Training) train(r *EpochReport, e int) error {
	res, err := t.pass(e, 0, t.main, r.LR, t.cfg.Batch)
	if err != nil {
		return err
	}
	r.Loss = res.Loss
	if v := t.cfg.Interleave; v != nil {
		lr := r.LR
		if v.LR > 0 {
			lr = v.LR * t.cfg.Schedule.At(e, t.cfg.Epochs)
		}
		if res, err = t.pass(e, 1, t.held, lr, v.batch(t.cfg)); err != nil {
			return fmt.Errorf("interleaved: %w", err)
		}
		r.Second = res.Loss
	}
	return nil
}

// pass is one pass over rows with the first (part 0) or the interleaved loss (part 1). The order is a function of the
// epoch alone, not of the order before.
func (t *Training) pass(e, part int, rows []int32, lr float64, batch int) (backend.EpochResult, error) {
	order := t.in.Train.Order(append([]int32(nil), rows...), t.cfg.Seed, 2*e+part)
	b := backend.EpochPlan{
		Rows:        order,
		Batch:       batch,
		Loss:        part,
		LR:          float32(lr),
		Momentum:    float32(t.cfg.Momentum),
		WeightDecay: float32(t.cfg.WeightDecay),
		Decoupled:   t.cfg.Decoupled,
		Nesterov:    t.cfg.Nesterov,
		Stop:        t.in.Stop,
	}
	if m := t.cfg.MaCCal; m != nil && m.Masks {
		b.Mask = &backend.Mask{Keep: t.q, Seed: t.cfg.Seed, FirstStep: t.step, Restrict: m.Restrict}
	}
	if t.cfg.Mixup > 0 && part == 0 {
		b.Mix = t.cfg.mixup(e, order, batch)
	}
	if part == 0 {
		b.Trained = t.trained(e)
	}
	res, err := t.session.Epoch(b)
	t.step += uint32(data.Batches(len(rows), batch))
	return res, err
}

// control measures confidence and accuracy on the training rows and moves q.
func (t *Training) control(r *EpochReport) error {
	m := t.cfg.MaCCal
	if m == nil {
		return nil
	}
	w := backend.Weights{Scale: 1}
	switch {
	case !m.Masks:
	case m.Measure == MeasureScaled:
		w.Scale = float32(t.q)
	case m.Measure == MeasureMasked:
		w.Mask = &backend.Mask{Keep: t.q, Seed: t.cfg.Seed, FirstStep: t.step}
	}
	got, err := t.session.Measure(backend.TrainSet, w)
	if err != nil {
		return err
	}
	r.Train, r.Q, r.Eta = &got, t.q, m.eta(r.Epoch, t.cfg.Epochs)
	t.q = m.next(t.q, got.Confidence, got.Accuracy, r.Eta)
	r.NextQ = t.q
	return nil
}

// Head is the resulting head, with the scaling at inference in its weights.
func (t *Training) Head() *head.Head {
	scaled := t.bestScale != 0 && t.bestScale != 1
	var h *head.Head
	switch {
	case t.variant != nil:
		h = t.variant.Served(t.best)
	case t.scaling != nil && t.report.Best == 0 && t.cfg.Head == HeadCurrent && !scaled:
		return t.in.Current.Clone() // as it was, and not nearly so
	default:
		h = t.problem.Head.Clone()
		for i, p := range h.Params() {
			copy(p, t.best[i])
		}
		if scaled {
			h = h.Scaled(t.bestScale)
		}
	}
	if t.scaling != nil {
		t.scaling.from(h)
	}
	return h
}

// Close frees the device.
func (t *Training) Close() error { return t.session.Close() }

// Run trains to the end and returns the head and the report; between epochs it looks at ctx. each, which may be nil,
// sees the training after every epoch.
func Run(
	ctx context.Context, cfg Config, in Input, b backend.Backend, each func(*Training) error,
) (*head.Head, Report, error) {
	t, err := New(cfg, in, b)
	if err != nil {
		return nil, Report{}, err
	}
	defer t.Close()
	for !t.Done() {
		if err := ctx.Err(); err != nil {
			return nil, t.Summary(), err
		}
		if err := t.Step(); err != nil {
			return nil, t.Summary(), err
		}
		if each != nil {
			if err := each(t); err != nil {
				return nil, t.Summary(), err
			}
		}
	}
	return t.Head(), t.Summary(), nil
}
