package conformance

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// T is the part of testing.T that is used.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Tolerance is how far a backend may be from the reference: orders of sums differ, and float32 rounds.
type Tolerance struct {
	// Params is the largest difference of a parameter or velocity after an epoch of 8 steps, relative to the largest of
	// its tensor; Loss that of losses and measures, relative or absolute, whichever is larger.
	Params, Loss float64
}

// Case is one epoch of one problem.
type Case struct {
	Name    string
	Problem backend.Problem
	Epoch   backend.EpochPlan
}

const (
	rows, features, classes, width = 61, 7, 5, 9
	batch                          = 8
)

// newCase is an epoch over all rows, as edited; edit may be nil.
func newCase(name string, h *head.Head, losses []string, edit func(*backend.EpochPlan)) Case {
	e := backend.EpochPlan{
		Rows:        data.Shuffled(data.Rows(rows), 9, 1),
		Batch:       batch,
		LR:          0.1,
		Momentum:    0.9,
		WeightDecay: 5e-3,
	}
	if edit != nil {
		edit(&e)
	}
	p := backend.Problem{
		Train:  Rows(rows, 1),
		Eval:   []*data.Set{Rows(40, 2), Rows(1, 3)},
		Head:   h,
		Losses: losses,
		Batch:  batch + 3,
	}
	return Case{Name: name, Problem: p, Epoch: e}
}

// Cases are the problems that Check runs.
func Cases() []Case {
	linear, bottleneck := head.FreshLinear(features, classes, 5), head.Bottleneck(features, width, classes, 6)
	mask := func(keep float64, restrict bool) *backend.Mask {
		return &backend.Mask{Keep: keep, Seed: 1 << 40, FirstStep: 3, Restrict: restrict}
	}
	var list []Case
	add := func(name string, h *head.Head, losses []string, edit func(*backend.EpochPlan)) {
		list = append(list, newCase(name, h, losses, edit))
	}
	ce := []string{"ce"}
	half := func() *data.Set {
		s := Rows(rows+5, 4)
		s.X, s.Half = nil, halves(s.X)
		return s
	}
	add("linear", linear, ce, nil)
	add("bottleneck", bottleneck, ce, nil)
	add("decoupled decay, nesterov", bottleneck, ce, func(e *backend.EpochPlan) {
		e.Decoupled, e.Nesterov = true,
			true
	})
	add("masks", bottleneck, ce, func(e *backend.EpochPlan) { e.Mask = mask(0.6, false) })
	add("masks on the gradient", bottleneck, ce, func(e *backend.EpochPlan) { e.Mask = mask(0.6, true) })
	add("everything kept", linear, ce, func(e *backend.EpochPlan) { e.Mask = mask(1, true) })
	add("nothing kept", bottleneck, ce, func(e *backend.EpochPlan) { e.Mask = mask(0, true) })
	add("mixup", bottleneck, ce, func(e *backend.EpochPlan) {
		e.Mix = &backend.Mix{
			Partner: data.Shuffled(data.Rows(rows), 9, 2),
			Lambda:  []float32{0, 1, 0.5, 0.25, 0.9, 0.1, 0.7, 0.3},
		}
	})
	add("some rows, twice", linear, ce, func(e *backend.EpochPlan) {
		e.Rows = []int32{3, 3, 9, 60, 0, 3,
			12}
		e.Batch = 3
	})
	add("second loss, larger batch", bottleneck, []string{"ce", "focal{gamma:2}"}, func(e *backend.EpochPlan) {
		e.Loss, e.Batch = 1, batch+3
	})
	order := data.Shuffled(data.Rows(rows+5), 2, 2)
	for _, c := range []struct {
		name string
		of   *data.Set
	}{{"float16, views", half()}, {"float16, scaled views", scaled(half())},
		{"scaled views", scaled(Rows(rows+5, 4))}} {
		add(c.name, bottleneck, ce, func(e *backend.EpochPlan) {
			e.Mix = &backend.Mix{Partner: e.Rows, Lambda: make([]float32, batch)}
		})
		list[len(list)-1].Problem.Train = c.of.Select(order[:rows])
		list[len(list)-1].Problem.Eval = []*data.Set{c.of, c.of.Select(order[rows:])}
	}
	for _, l := range losses() {
		add(l, linear, []string{l}, nil)
	}
	return list
}

// scaled has the features less a mean, by a deviation.
func scaled(s *data.Set) *data.Set {
	s.Mean, s.SD = make([]float64, s.D), make([]float64, s.D)
	for j := range s.Mean {
		s.Mean[j], s.SD[j] = float64(j)/10-.2, .5+float64(j%3)
	}
	return s
}

// losses has every kind of loss.
func losses() []string {
	return []string{
		"squared",
		"smoothing",
		"focal",
		"flsd53",
		"inverse_focal",
		"dual_focal",
		"aurc",
		"au",
		"au{csf:margin}",
		"au{csf:negent,through:true}",
		"ce + 0.5*sbece",
		"ce + 0.5*sbece{variant:lb}",
		"ce + 0.3*avuc",
		"focal + 0.5*savuc",
		"ce + mmce",
		"ce + mbls{margin:1}",
		"ce + acls{margin:1}",
		"ce + mdca",
		"ce + 0.1*cpc",
		"ce + 0.5*crl",
		"ce + 0.1*entropy",
		"kde_xe",
		"classwise",
	}
}

// Rows are clusters of points with labels, a few of them wrong: a function of n and seed.
func Rows(n int, seed uint64) *data.Set {
	src := philox.Source{Stream: philox.Stream{Seed: seed}}
	s := &data.Set{D: features, K: classes}
	for range n {
		y := int32(src.Below(classes))
		for j := range features {
			v := src.Float64() + src.Float64() + src.Float64() - 1.5
			if int32(j) == y {
				v += 1
			}
			s.X = append(s.X, float32(v))
		}
		if src.Below(10) == 0 {
			y = int32(src.Below(classes))
		}
		s.Y = append(s.Y, y)
	}
	return s
}

// halves are the bits of float16 numbers near x, which are normal numbers or 0.
func halves(x []float32) []uint16 {
	out := make([]uint16, len(x))
	for i, v := range x {
		b := math.Float32bits(v)
		if e := int(b>>23&0xff) - 127 + 15; e > 0 && e < 31 {
			out[i] = uint16(b>>16&0x8000) | uint16(e<<10) | uint16(b>>13&0x3ff)
		}
	}
	return out
}

// Check runs all cases on b and on the reference and compares. A loss that b refuses with ErrUnsupported is logged;
// cross-entropy must work.
func Check(t T, b backend.Backend, tol Tolerance) {
	t.Helper()
	for _, c := range Cases() {
		err := CheckCase(c, b, tol)
		switch {
		case errors.Is(err, backend.ErrUnsupported) && c.Problem.Losses[0] != "ce":
			t.Logf("%s: %s: %v", b.Name(), c.Name, err)
		case err != nil:
			t.Errorf("%s: %s: %v", b.Name(), c.Name, err)
		}
	}
}

// CheckCase runs one case on b and on the reference, and says how they differ.
func CheckCase(c Case, b backend.Backend, tol Tolerance) error {
	s, err := b.Open(c.Problem)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	ref, err := backend.Go{}.Open(c.Problem)
	if err != nil {
		return errors.Join(fmt.Errorf("reference: %w", err), s.Close())
	}
	err = compare(c, s, ref, tol)
	if err == nil {
		err = errors.Join(resumes(c, b, s), refuses(c, s))
	}
	return errors.Join(err, s.Close(), ref.Close())
}

// compare runs the epoch on both and compares everything that can be seen.
func compare(c Case, s, ref backend.Session, tol Tolerance) error {
	if err := sameMeasures(c, s, ref, tol); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	got, err := s.Epoch(c.Epoch)
	if err != nil {
		return err
	}
	want, err := ref.Epoch(c.Epoch)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	if got.Rows != want.Rows || !near(got.Loss, want.Loss, tol.Loss) {
		return fmt.Errorf("epoch: %+v, want %+v", got, want)
	}
	gs, err := s.State()
	if err != nil {
		return err
	}
	ws, err := ref.State()
	if err != nil {
		return err
	}
	for _, p := range []struct {
		what      string
		got, want [][]float32
	}{{"parameter", gs.Params, ws.Params}, {"velocity", gs.Velocity, ws.Velocity}} {
		if err := sameTensors(p.got, p.want, tol.Params); err != nil {
			return fmt.Errorf("%s %w", p.what, err)
		}
	}
	if fmt.Sprint(gs.Right, gs.Seen) != fmt.Sprint(ws.Right, ws.Seen) {
		return fmt.Errorf("history %v of %v, want %v of %v", gs.Right, gs.Seen, ws.Right, ws.Seen)
	}
	return sameMeasures(c, s, ref, tol)
}

func near(got, want, tol float64) bool { return math.Abs(got-want) <= tol*max(1, math.Abs(want)) }

func sameTensors(got, want [][]float32, tol float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("tensors: %d, want %d", len(got), len(want))
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("tensor %d: %d values, want %d", i, len(got[i]), len(want[i]))
		}
		var largest float64
		for _, v := range want[i] {
			largest = max(largest, math.Abs(float64(v)))
		}
		for j, v := range want[i] {
			if d := math.Abs(float64(got[i][j]) - float64(v)); !(d <= tol*largest) {
				return fmt.Errorf("tensor %d, value %d: %v, want %v within %g", i, j, got[i][j], v, tol*largest)
			}
		}
	}
	return nil
}

func sameMeasure(got, want backend.Measurement, tol float64) bool {
	return got.N == want.N && near(got.NLL, want.NLL, tol) && near(got.Confidence, want.Confidence, tol) &&
		math.Abs(got.Accuracy-want.Accuracy) <= 1e-9
}

func sameMeasures(c Case, s, ref backend.Session, tol Tolerance) error {
	for set := backend.TrainSet; set < len(c.Problem.Eval); set++ {
		n := c.Problem.Train.N()
		if set >= 0 {
			n = c.Problem.Eval[set].N()
		}
		for _, w := range []backend.Weights{{}, {Scale: 0.7}, {Mask: &backend.Mask{Keep: 0.5, Seed: 2, FirstStep: 8}}} {
			got, err := s.Measure(set, w)
			if err != nil {
				return err
			}
			want, err := ref.Measure(set, w)
			if err != nil {
				return err
			}
			if !sameMeasure(got, want, tol.Loss) {
				return fmt.Errorf("measure of set %d: %+v, want %+v", set, got, want)
			}
			a, b := make([]float32, n*classes), make([]float32, n*classes)
			if err := s.Logits(set, w, a); err != nil {
				return err
			}
			if err := ref.Logits(set, w, b); err != nil {
				return err
			}
			if err := sameTensors([][]float32{a}, [][]float32{b}, tol.Params); err != nil {
				return fmt.Errorf("logits of set %d: %w", set, err)
			}
		}
	}
	return nil
}

// resumes checks that the state is all there is: another session in that state goes on with the same bits.
func resumes(c Case, b backend.Backend, s backend.Session) error {
	st, err := s.State()
	if err != nil {
		return err
	}
	other, err := b.Open(c.Problem)
	if err != nil {
		return err
	}
	defer other.Close()
	if err := other.SetState(st); err != nil {
		return err
	}
	var after [2]*backend.TrainingState
	for i, session := range []backend.Session{s, other} {
		if _, err := session.Epoch(c.Epoch); err != nil {
			return err
		}
		if after[i], err = session.State(); err != nil {
			return err
		}
	}
	if err := sameTensors(after[1].Params, after[0].Params, 0); err != nil {
		return fmt.Errorf("resumed: parameter %w", err)
	}
	return sameTensors(after[1].Velocity, after[0].Velocity, 0)
}

// refuses checks that nonsense is an error and not a crash.
func refuses(c Case, s backend.Session) error {
	n := int32(c.Problem.Train.N())
	for want, edit := range map[string]func(*backend.EpochPlan){
		"no rows": func(e *backend.EpochPlan) { e.Rows = nil },
		"row": func(e *backend.EpochPlan) {
			e.Rows = append([]int32(nil), e.Rows...)
			e.Rows[0] = n
		},
		"batch": func(e *backend.EpochPlan) { e.Batch = c.Problem.Batch + 1 },
		"loss":  func(e *backend.EpochPlan) { e.Loss = len(c.Problem.Losses) },
		"keep":  func(e *backend.EpochPlan) { e.Mask = &backend.Mask{Keep: 1.5} },
		"mix":   func(e *backend.EpochPlan) { e.Mix = &backend.Mix{} },
	} {
		e := c.Epoch
		edit(&e)
		_, err := s.Epoch(e)
		switch {
		case err == nil:
			return fmt.Errorf("no error, want one with %q", want)
		case !strings.Contains(err.Error(), want):
			return fmt.Errorf("want an error with %q: %w", want, err)
		}
	}
	e := c.Epoch
	stop := make(chan struct{})
	close(stop)
	e.Stop = stop
	if _, err := s.Epoch(e); !errors.Is(err, backend.ErrStopped) {
		return fmt.Errorf("error %w, want ErrStopped", err)
	}
	if _, err := s.Measure(len(c.Problem.Eval), backend.Weights{}); err == nil {
		return fmt.Errorf("no error for a set that does not exist")
	}
	return nil
}
