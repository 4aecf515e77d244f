package backend

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/optim"
)

// ErrUnsupported means that this backend cannot run this problem (no device, a loss it lacks, too little memory);
// another can.
var ErrUnsupported = errors.New("not supported by this backend")

// ErrDiverged means that logits became infinite or NaN. A smaller learning rate may help.
var ErrDiverged = errors.New("training diverged")

// ErrStopped means that an epoch was stopped from outside.
var ErrStopped = errors.New("stopped")

// Backend makes sessions.
type Backend interface {
	// Name is go, gorgonia, cuda.
	Name() string
	// Open moves the problem to the device. The caller closes the session. Errors wrap ErrUnsupported where another
	// backend may do.
	Open(p Problem) (Session, error)
}

// Problem is what does not change in a training. Backends read it, features through Set.Gather or Set.Chunk, and keep
// no reference after Session.Close. Train and Eval may be views of one slab.
type Problem struct {
	Train *data.Set
	// Eval are further sets that are measured, such as validation rows.
	Eval []*data.Set
	// Head has the initial parameters and the shape.
	Head *head.Head
	// Losses are texts of package loss; an epoch names one by its place.
	Losses []string
	// CDF has a stream's counts of the CSF for au, or is nil.
	CDF []float64
	// Batch is the largest mini-batch.
	Batch int
}

// Session is one training on a device. One goroutine calls it.
type Session interface {
	// Epoch runs the mini-batches of e. After an error the parameters are undefined.
	Epoch(e EpochPlan) (EpochResult, error)
	// Measure scores the head, with its weights as viewed by w, on a set: TrainSet, or a place in Problem.Eval.
	Measure(set int, w Weights) (Measurement, error)
	// Logits writes the n×K logits of a set.
	Logits(set int, w Weights, dst []float32) error
	// State copies everything that an epoch changes; SetState puts it back, and training goes on with the same bits.
	State() (*TrainingState, error)
	SetState(s *TrainingState) error
	// Close frees the device. No call may follow.
	Close() error
}

// TrainSet names the training rows in Measure and Logits.
const TrainSet = -1

// EpochPlan is one pass over some training rows.
type EpochPlan struct {
	// Rows are training rows in order; mini-batch b has rows b·Batch … (b+1)·Batch−1, the last perhaps fewer.
	Rows  []int32
	Batch int
	// Loss is a place in Problem.Losses.
	Loss int
	// LR, Momentum, WeightDecay, Decoupled and Nesterov are those of optim.SGD; all parameters decay.
	LR, Momentum, WeightDecay float32
	Decoupled, Nesterov       bool
	// Mask, where not nil, multiplies weights by 0 or 1.
	Mask *Mask
	// Mix, where not nil, mixes features.
	Mix *Mix
	// Trained is how many layers, from the first, a step changes; 0 is all. Only [Go] knows it.
	Trained int
	// Stop, where it is closed, ends the epoch with ErrStopped before its next mini-batch.
	Stop <-chan struct{}
}

// Stopped is ErrStopped once the epoch is to end.
func (e EpochPlan) Stopped() error {
	select {
	case <-e.Stop:
		return ErrStopped
	default: // nil never comes
		return nil
	}
}

// SGD is the step after each mini-batch.
func (e EpochPlan) SGD() optim.SGD {
	return optim.SGD{
		LR:          e.LR,
		Momentum:    e.Momentum,
		WeightDecay: e.WeightDecay,
		Decoupled:   e.Decoupled,
		Nesterov:    e.Nesterov,
	}
}

// Mask has new masks on the weights (not biases) of every layer for every mini-batch: weight i of layer l in mini-batch
// s is kept iff word i of philox.Stream{Seed, Mask, A: l, B: FirstStep + s} is below philox.Threshold(Keep).
type Mask struct {
	Keep      float64
	Seed      uint64
	FirstStep uint32
	// Restrict multiplies the gradient of the weights by the same mask, before momentum and decay.
	Restrict bool
}

// Mix mixes row Rows[i] with training row Partner[i]: features λx + (1 − λ)x', loss λL(y) + (1 − λ)L(y'), with λ of the
// mini-batch.
type Mix struct {
	Partner []int32
	Lambda  []float32
}

// Weights is the view of the weights in a measurement: multiplied by Scale (0 means 1), or by Mask of step
// FirstStep, which is the same for all rows.
type Weights struct {
	Scale float32
	Mask  *Mask
}

// EpochResult sums up the epoch's mini-batches, each before its update.
type EpochResult struct {
	// Loss is the mean over mini-batches of the loss, each weighted by its rows.
	Loss float64
	// Rows is how many rows were passed over.
	Rows int
}

// Measurement has means over the rows of a set.
type Measurement struct {
	N          int     `json:"n"`
	NLL        float64 `json:"nll"`
	Accuracy   float64 `json:"accuracy"`
	Confidence float64 `json:"confidence"`
}

// TrainingState is everything that epochs change.
type TrainingState struct {
	// Params and Velocity are those of head.Head.Params, in its order.
	Params, Velocity [][]float32
	// Right and Seen count for every training row how often it was classified correctly, and how often it came: the
	// history of crl.
	Right, Seen []int32
}

// Check returns an error where a state does not fit a problem.
func (s *TrainingState) Check(p Problem) error {
	want := p.Head.Params()
	if len(s.Params) != len(want) || len(s.Velocity) != len(want) {
		return fmt.Errorf("state: %d parameters and %d velocities, allowed %d",
			len(s.Params), len(s.Velocity), len(want))
	}
	for i, w := range want {
		if p, v := s.Params[i], s.Velocity[i]; len(p) != len(w) || len(v) != len(w) {
			return fmt.Errorf("state: parameter %d has %d values and %d velocities, allowed %d",
				i, len(p), len(v), len(w))
		}
	}
	if n := p.Train.N(); len(s.Right) != n || len(s.Seen) != n {
		return fmt.Errorf("state: history of %d and %d rows, allowed %d", len(s.Right), len(s.Seen), n)
	}
	return nil
}

// Check returns an error that names what does not fit.
func (p Problem) Check() error {
	if err := p.Head.Check(); err != nil {
		return err
	}
	if p.Batch < 1 || len(p.Losses) == 0 {
		return fmt.Errorf("problem: batch %d and %d losses, allowed at least 1 of each", p.Batch, len(p.Losses))
	}
	for i, s := range append([]*data.Set{p.Train}, p.Eval...) {
		if err := s.Check(); err != nil {
			return fmt.Errorf("set %d: %w", i-1, err)
		}
		if s.N() == 0 {
			return fmt.Errorf("set %d: no rows, allowed at least 1", i-1)
		}
		if d, k := p.Head.D(), p.Head.K(); s.D != d || s.K != k {
			return fmt.Errorf("set %d: %d features and %d classes, the head has %d and %d", i-1, s.D, s.K, d, k)
		}
	}
	return nil
}

// Check returns an error that names what does not fit the problem.
func (e EpochPlan) Check(p Problem) error {
	switch {
	case len(e.Rows) == 0:
		return fmt.Errorf("epoch: no rows")
	case e.Batch < 1 || e.Batch > p.Batch:
		return fmt.Errorf("epoch: batch %d, allowed 1..%d", e.Batch, p.Batch)
	case e.Loss < 0 || e.Loss >= len(p.Losses):
		return fmt.Errorf("epoch: loss %d, allowed 0..%d", e.Loss, len(p.Losses)-1)
	case e.Trained < 0 || e.Trained > len(p.Head.Layers):
		return fmt.Errorf("epoch: %d trained layers, allowed 0 (all) to %d", e.Trained, len(p.Head.Layers))
	case e.Mask != nil && !(e.Mask.Keep >= 0 && e.Mask.Keep <= 1):
		return fmt.Errorf("epoch: keep %v, allowed 0..1", e.Mask.Keep)
	}
	if err := checkRows(e.Rows, p.Train); err != nil || e.Mix == nil {
		return err
	}
	partners, shares := len(e.Mix.Partner), len(e.Mix.Lambda)
	if batches := data.Batches(len(e.Rows), e.Batch); partners != len(e.Rows) || shares != batches {
		return fmt.Errorf("epoch: mix of %d partners and %d shares, allowed %d and %d",
			partners, shares, len(e.Rows), batches)
	}
	return checkRows(e.Mix.Partner, p.Train)
}

func checkRows(rows []int32, s *data.Set) error {
	n := int32(s.N())
	for _, r := range rows {
		if r < 0 || r >= n {
			return fmt.Errorf("epoch: row %d, allowed 0..%d", r, n-1)
		}
	}
	return nil
}
