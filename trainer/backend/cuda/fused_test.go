package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// clusters are rows of k classes in d features, at a distance that a head partly separates.
func clusters(n, d, k int, seed uint64) *data.Set {
	src := philox.Source{Stream: philox.Stream{Seed: seed}}
	s := &data.Set{D: d, K: k}
	for range n {
		y := int32(src.Below(uint32(k)))
		for j := range d {
			v := 2*src.Float64() - 1
			if j%k == int(y)%d {
				v++
			}
			s.X = append(s.X, float32(v))
		}
		s.Y = append(s.Y, y)
	}
	return s
}

// together runs epochs on the device and on the reference and compares losses and parameters.
func together(t *testing.T, b *Backend, p backend.Problem, epochs ...backend.EpochPlan) {
	t.Helper()
	if err := agree(b, p, epochs...); err != nil {
		t.Errorf("%s: %v", p.Losses, err)
	}
}

// agree says how epochs differ on the device and on the reference.
func agree(b *Backend, p backend.Problem, epochs ...backend.EpochPlan) (err error) {
	got, err := b.Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, got.Close()) }()
	want, err := backend.Go{}.Open(p)
	if err != nil {
		return err
	}
	if err := sameMeasure(got, want); err != nil {
		return err
	}
	for _, e := range epochs {
		a, err := got.Epoch(e)
		if err != nil {
			return err
		}
		b, err := want.Epoch(e)
		if err != nil {
			return err
		}
		if !(math.Abs(a.Loss-b.Loss) <= 2e-6*max(1, math.Abs(b.Loss))) {
			return fmt.Errorf("loss %v, want %v", a.Loss, b.Loss)
		}
	}
	return sameState(got, want)
}

func sameMeasure(got, want backend.Session) error {
	g, err := got.Measure(backend.TrainSet, backend.Weights{})
	if err != nil {
		return err
	}
	w, err := want.Measure(backend.TrainSet, backend.Weights{})
	if err != nil {
		return err
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= LossBound*max(1, math.Abs(b)) }
	if g.N != w.N || g.Accuracy != w.Accuracy || !near(g.NLL, w.NLL) || !near(g.Confidence, w.Confidence) {
		return fmt.Errorf("measured %+v, want %+v", g, w)
	}
	return nil
}

func sameState(got, want backend.Session) error {
	gs, err := got.State()
	if err != nil {
		return err
	}
	ws, err := want.State()
	if err != nil {
		return err
	}
	for i := range ws.Velocity {
		var largest, off float64
		for j, v := range ws.Velocity[i] {
			largest = max(largest, math.Abs(float64(v)))
			off = max(off, math.Abs(float64(gs.Velocity[i][j])-float64(v)))
		}
		if !(off <= 2e-5*largest) {
			return fmt.Errorf("velocities of tensor %d differ by %g of %g", i, off, largest)
		}
	}
	if !slices.Equal(gs.Right, ws.Right) || !slices.Equal(gs.Seen, ws.Seen) {
		return fmt.Errorf("history differs")
	}
	return nil
}

func epochOf(n, batch int) backend.EpochPlan {
	return backend.EpochPlan{
		Rows:        data.Shuffled(data.Rows(n), 3, 1),
		Batch:       batch,
		LR:          0.2,
		Momentum:    0.9,
		WeightDecay: 1e-3,
	}
}

// smallProblem has n rows of 4 classes in 6 features, and mini-batches of at most 16.
func smallProblem(n int, loss string) backend.Problem {
	return backend.Problem{
		Train:  clusters(n, 6, 4, 2),
		Head:   head.FreshLinear(6, 4, 4),
		Losses: []string{loss},
		Batch:  16,
	}
}

// lossTexts has every loss that the kernels have, with options and sums.
var lossTexts = []string{
	"ce + 0.1*entropy",
	"squared + 0.5*smoothing{epsilon:0.2}",
	"focal{gamma:0}",
	"focal{gamma:1.5}",
	"inverse_focal{gamma:2}",
	"dual_focal{variant:released}",
	"dual_focal{variant:eq25_26}",
	"dual_focal + squared + 0.3*entropy + smoothing",
	"dual_focal + focal + flsd53 + ce", // what each term does to the rival class
	"inverse_focal + dual_focal",
	"au{kappa:1}",
	"au{kappa:0}",
	"au{normalise:true}",
	"au{csf:negent,nu:0.02,bins:7}",
	"au{csf:margin}(focal)",
	"ce + 2*au(dual_focal)",
	"0*ce",
}

func lossProblem(text string) backend.Problem {
	return backend.Problem{
		Train:  clusters(90, 12, 6, 8),
		Head:   head.FreshLinear(12, 6, 4),
		Losses: []string{text},
		Batch:  32,
	}
}

// TestLosses: every loss that the kernels have is package loss's.
func TestLosses(t *testing.T) {
	needDevice(t)
	for _, text := range lossTexts {
		c, err := compile(text)
		if err != nil || !c.fused {
			t.Fatalf("%s: in the kernels %v, error %v", text, c != nil && c.fused, err)
		}
		together(t, new(Backend), lossProblem(text), epochOf(90, 32))
	}
}

// tied is a problem whose logits are small whole numbers: many are equal, also those that one thread reads.
func tied(text string) backend.Problem {
	const n, d, k = 24, 3, 300
	set, w := &data.Set{D: d, K: k}, make([]float32, d*k)
	for i := range n {
		for j := range d {
			set.X = append(set.X, float32((i*7+j*5)%4-1))
		}
		set.Y = append(set.Y, int32(i*53%k/(1+49*(i%2)))) // every other label is small, as the first of equal ones is
	}
	for i := range w {
		w[i] = float32(i * 11 % 3)
	}
	h, err := head.Linear(w, make([]float32, k))
	if err != nil {
		panic(err)
	}
	return backend.Problem{Train: set, Head: h, Losses: []string{text}, Batch: n}
}

var tiedTexts = []string{
	"dual_focal", "dual_focal{variant:released}", "dual_focal{variant:eq25_26}", "au{csf:margin}", "crl",
}

// TestTies: of equal logits the first is the largest, as in the reference.
func TestTies(t *testing.T) {
	needDevice(t)
	for _, text := range tiedTexts {
		together(t, &Backend{BLAS: OwnKernels}, tied(text), epochOf(24, 24))
	}
}

// TestStreamCDF: au takes the stream's counts where there are some, on the device and on the host.
func TestStreamCDF(t *testing.T) {
	needDevice(t)
	if err := streamCDF(); err != nil {
		t.Error(err)
	}
}

func streamCDF() error {
	var errs []error
	for _, text := range []string{"au", "au{through:true,csf:margin}"} {
		p := smallProblem(50, text)
		p.CDF = []float64{3, 0, 5, 2, 40, 17, 8}
		errs = append(errs, agree(&Backend{BLAS: OwnKernels}, p, epochOf(50, 16)))
	}
	return errors.Join(errs...)
}

// shape is a problem with epochs of it.
type shape struct {
	name   string
	p      backend.Problem
	epochs []backend.EpochPlan
}

// shapes have more rows, features and classes than a block has threads or a tile has numbers, mixup and masks with
// losses of both kinds, rows in float16.
func shapes() []shape {
	mixed := epochOf(150, 70)
	mixed.Mix = &backend.Mix{Partner: data.Shuffled(data.Rows(150), 7, 7), Lambda: []float32{0.3, 0.8, 0.5}}
	masked := epochOf(150, 70)
	masked.Mask = &backend.Mask{Keep: 0.7, Seed: 3, FirstStep: math.MaxUint32 - 1, Restrict: true}
	train := clusters(150, 300, 9, 5)
	half := &data.Set{D: 300, K: 9, Y: train.Y, Half: make([]uint16, len(train.X))}
	for i := range half.Half {
		half.Half[i] = uint16(i * 7919 % 0x3c00) // below 1, subnormal numbers among them
		if i%3 == 0 {
			half.Half[i] |= 0x8000
		}
	}
	problem := func(set *data.Set, h *head.Head, losses ...string) backend.Problem {
		return backend.Problem{Train: set, Head: h, Losses: losses, Batch: 280}
	}
	return []shape{
		{
			"classes",
			problem(clusters(300, 5, 270, 1), head.FreshLinear(5, 270, 1), "squared", "au{csf:margin}"),
			[]backend.EpochPlan{epochOf(300, 280), {Rows: data.Rows(300), Batch: 280, Loss: 1, LR: 1}},
		},
		{
			"bottleneck",
			problem(train, head.Bottleneck(300, 70, 9, 1), "au(focal)"),
			[]backend.EpochPlan{mixed, masked, mixed},
		},
		{"float16", problem(half, head.Bottleneck(300, 33, 9, 1), "ce"), []backend.EpochPlan{mixed, masked}},
		{
			"host's loss",
			problem(half, head.FreshLinear(300, 9, 1), "ce + 0.5*crl"),
			[]backend.EpochPlan{mixed, masked, mixed},
		},
	}
}

func TestShapes(t *testing.T) {
	needDevice(t)
	for _, c := range shapes() {
		together(t, new(Backend), c.p, c.epochs...)
		together(t, &Backend{FeatureBytes: -1, BLAS: OwnKernels}, c.p, c.epochs...)
	}
}

// TestDiverged: logits that are not finite end an epoch and a measurement, for losses of both kinds.
func TestDiverged(t *testing.T) {
	needDevice(t)
	for _, text := range []string{"ce", "au", "crl"} {
		if err := diverges(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func diverges(text string) (err error) {
	s, err := (&Backend{BLAS: OwnKernels}).Open(smallProblem(60, text))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	st, err := s.State()
	if err != nil {
		return err
	}
	st.Params[0][7] = float32(math.Inf(1))
	if err := s.SetState(st); err != nil {
		return err
	}
	_, epoch := s.Epoch(epochOf(60, 16))
	_, measure := s.Measure(backend.TrainSet, backend.Weights{})
	logits := s.Logits(backend.TrainSet, backend.Weights{}, make([]float32, 60*4))
	for _, err := range []error{epoch, measure, logits} {
		if !errors.Is(err, backend.ErrDiverged) {
			return fmt.Errorf("error %w, want ErrDiverged", err)
		}
	}
	return nil
}

// TestLongerEpoch: an epoch with more rows than the one before needs more room, and what was recorded is dropped.
func TestLongerEpoch(t *testing.T) {
	needDevice(t)
	p := smallProblem(40, "ce")
	long := epochOf(40, 8)
	long.Rows = append(long.Rows, long.Rows...)
	together(t, new(Backend), p, epochOf(24, 8), long, epochOf(24, 8))
}
