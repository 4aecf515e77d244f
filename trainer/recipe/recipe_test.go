package recipe_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/optim"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// small is a problem of 200 and 80 rows.
func small() recipe.Input {
	in := recipe.Input{Train: conformance.Rows(200, 1), Valid: conformance.Rows(80, 2)}
	in.Current = head.FreshLinear(in.Train.D, in.Train.K, 99)
	return in
}

// variants are every recipe and option, short.
func variants() map[string]recipe.Config {
	list := map[string]recipe.Config{
		"cross-entropy": recipe.CrossEntropy(),
		"au":            recipe.AU(),
		"stable":        recipe.MaCCalStable(),
		"printed":       recipe.MaCCalPrinted(),
	}
	c := recipe.CrossEntropy()
	c.Interleave = &recipe.Interleave{Loss: "sbece{variant:lb}", Share: 0.2, LR: 0.01, Batch: 40}
	list["interleaved"] = c
	c = recipe.CrossEntropy()
	c.Mixup, c.Head, c.Decoupled = 0.4, recipe.HeadBottleneck, true
	list["mixup"] = c
	c = recipe.CrossEntropy()
	c.Loss, c.Head = "ce + 0.5*crl", recipe.HeadLinear
	list["history"] = c
	c = recipe.MaCCalStable()
	c.MaCCal.Measure, c.KeepLast, c.Mixup = recipe.MeasureMasked, false, 1
	list["stable, measured under masks"] = c
	c = recipe.AU()
	c.Loss, c.CDF = "au{csf:margin,bins:20,through:true}", recipe.CDFRows
	list["au, counts of the rows"] = c
	c = recipe.CrossEntropy()
	c.Loss, c.Tempered = "focal{gamma:5}", true
	list["tempered"] = c
	for name, c := range list {
		c.Epochs, c.Batch, c.Seed = 6, 16, 7
		list[name] = c
	}
	return list
}

func mustRun(t *testing.T, cfg recipe.Config, in recipe.Input) (*head.Head, recipe.Report) {
	t.Helper()
	return run(t, cfg, in)
}

func TestRecipesLearn(t *testing.T) {
	for name, cfg := range variants() {
		h, r := mustRun(t, cfg, small())
		if err := h.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(r.Epochs) != 6 || r.Best < 1 || r.Epochs[r.Best-1].Valid.NLL >= r.Before.NLL {
			t.Errorf("%s: best epoch %d of %d, NLL %v before: nothing was learnt",
				name, r.Best, len(r.Epochs), r.Before.NLL)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: report: %v", name, err)
		}
	}
}

// TestHeadIsTheOneMeasured: the head that is returned has the validation NLL of the report's best epoch, scaling
// included.
func TestHeadIsTheOneMeasured(t *testing.T) {
	for name, cfg := range variants() {
		in := small()
		h, r := mustRun(t, cfg, in)
		got := nll(h, in)
		if want := r.Epochs[r.Best-1].Valid.NLL; math.Abs(got-want) > 1e-5 {
			t.Errorf("%s: NLL %v, reported %v", name, got, want)
		}
	}
}

func nll(h *head.Head, in recipe.Input) float64 {
	z := head.NewPass(h, in.Valid.N(), head.Gonum{}).Forward(h, in.Valid.X, in.Valid.N())
	var sum float64
	for i, y := range in.Valid.Y {
		var s float64
		for _, v := range z[i*in.Valid.K : (i+1)*in.Valid.K] {
			s += math.Exp(float64(v))
		}
		sum += math.Log(s) - float64(z[i*in.Valid.K+int(y)])
	}
	return sum / float64(in.Valid.N())
}

func TestSeeds(t *testing.T) {
	for name, cfg := range variants() {
		a, _ := mustRun(t, cfg, small())
		b, _ := mustRun(t, cfg, small())
		cfg.Seed++
		c, _ := mustRun(t, cfg, small())
		if !same(a, b) {
			t.Errorf("%s: the same seed gives other parameters", name)
		}
		if same(a, c) {
			t.Errorf("%s: another seed gives the same parameters", name)
		}
	}
}

func same(a, b *head.Head) bool {
	for i, p := range a.Params() {
		if !slices.Equal(p, b.Params()[i]) {
			return false
		}
	}
	return true
}

// TestResume: after every epoch, another training that reads the checkpoint ends with the same bits and report.
func TestResume(t *testing.T) {
	for name, cfg := range variants() {
		var checkpoints [][]byte
		in := small()
		want, report, err := recipe.Run(context.Background(), cfg, in, backend.Go{}, func(tr *recipe.Training) error {
			b, err := tr.Checkpoint()
			checkpoints = append(checkpoints, b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		wantJSON, _ := json.Marshal(report)
		if len(checkpoints) != cfg.Epochs {
			t.Fatalf("%s: %d checkpoints of %d epochs", name, len(checkpoints), cfg.Epochs)
		}
		for e, b := range checkpoints {
			tr, err := recipe.New(cfg, in, backend.Go{})
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Restore(b); err != nil {
				t.Fatalf("%s: epoch %d: %v", name, e+1, err)
			}
			for !tr.Done() {
				if err := tr.Step(); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := json.Marshal(tr.Summary()); string(got) != string(wantJSON) || !same(tr.Head(), want) {
				t.Errorf("%s: resumed after epoch %d: another end\n got %s\nwant %s", name, e+1, got, wantJSON)
			}
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCheckpointsAreChecked(t *testing.T) {
	cfg, in := variants()["stable"], small()
	tr, err := recipe.New(cfg, in, backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Step(); err != nil {
		t.Fatal(err)
	}
	good, err := tr.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 1 + len(good)/300 {
		for _, bad := range [][]byte{good[:i], append(append(slices.Clone(good[:i]), good[i]^4), good[i+1:]...)} {
			if err := tr.Restore(bad); !errors.Is(err, recipe.ErrCheckpoint) {
				t.Fatalf("byte %d damaged: error %v, want ErrCheckpoint", i, err)
			}
		}
	}
	cfg.Seed++
	other, err := recipe.New(cfg, in, backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = other.Restore(good)
	if !errors.Is(err, recipe.ErrCheckpoint) || !strings.Contains(err.Error(), "another configuration") {
		t.Errorf("another seed: error %v", err)
	}
	if again, err := tr.Checkpoint(); err != nil || !slices.Equal(again, good) {
		t.Errorf("a refused checkpoint changed the training (%v)", err)
	}
}

func TestEarlyStopping(t *testing.T) {
	cfg := recipe.CrossEntropy()
	cfg.Head, cfg.Width = recipe.HeadBottleneck, 64
	cfg.LR, cfg.WeightDecay = 0.5, 0
	cfg.Epochs, cfg.Patience, cfg.Batch = 200, 3, 16
	in := small()
	h, r := mustRun(t, cfg, in)
	if !r.Stopped || len(r.Epochs) != r.Best+3 {
		t.Fatalf("stopped %v after %d epochs with the best %d and patience 3", r.Stopped, len(r.Epochs), r.Best)
	}
	for i, e := range r.Epochs {
		if e.Valid.NLL < r.Epochs[r.Best-1].Valid.NLL {
			t.Errorf("epoch %d has NLL %v, below that of the best", i+1, e.Valid.NLL)
		}
	}
	if got := nll(h, in); math.Abs(got-r.Epochs[r.Best-1].Valid.NLL) > 1e-5 {
		t.Errorf("NLL %v, want that of the best epoch", got)
	}
}

// TestTemperedSelection: the best epoch is that of the lowest NLL after a temperature, whatever the NLL itself says.
func TestTemperedSelection(t *testing.T) {
	cfg := variants()["tempered"]
	cfg.Epochs = 12
	in := small()
	h, r := mustRun(t, cfg, in)
	best := r.Epochs[r.Best-1]
	for _, e := range r.Epochs {
		if e.Tempered < best.Tempered || e.Tempered > e.Valid.NLL+1e-6 {
			t.Errorf("epoch %d: NLL %v, with a temperature %v; the best is %d with %v",
				e.Epoch, e.Valid.NLL, e.Tempered, r.Best, best.Tempered)
		}
	}
	low := math.Inf(1)
	for temp := 0.05; temp < 20; temp *= 1.01 {
		low = math.Min(low, nll(h.Tempered(temp), in))
	}
	if math.Abs(low-best.Tempered) > 1e-4 {
		t.Errorf("lowest NLL of any temperature %v, reported %v", low, best.Tempered)
	}
}

// TestNoChange: where no epoch is better than the current head, that is the result.
func TestNoChange(t *testing.T) {
	in := small()
	cfg := recipe.CrossEntropy()
	cfg.Epochs, cfg.Batch = 40, 16
	in.Current, _ = mustRun(t, cfg, in)
	cfg.Loss, cfg.LR = "entropy", 1 // rewards uncertainty, whatever the labels
	h, r := mustRun(t, cfg, in)
	if r.Best != 0 || !same(h, in.Current) {
		t.Errorf("best epoch %d, head unchanged %v; want the current head", r.Best, same(h, in.Current))
	}
}

func TestInterleavedRowsAreApart(t *testing.T) {
	cfg := variants()["interleaved"]
	spy := &spyBackend{}
	if _, _, err := recipe.Run(context.Background(), cfg, small(), spy, nil); err != nil {
		t.Fatal(err)
	}
	seen := map[int32]int{}
	for i, e := range spy.epochs {
		if e.Loss != i%2 || len(e.Rows) != []int{160, 40}[e.Loss] || e.Batch != []int{16, 40}[e.Loss] {
			t.Fatalf("pass %d: loss %d on %d rows by %d", i, e.Loss, len(e.Rows), e.Batch)
		}
		for _, r := range e.Rows {
			if was, ok := seen[r]; ok && was != e.Loss {
				t.Fatalf("row %d is seen by both losses", r)
			}
			seen[r] = e.Loss
		}
	}
	if len(seen) != 200 || len(spy.epochs) != 12 {
		t.Errorf("%d rows in %d passes", len(seen), len(spy.epochs))
	}
}

// spyBackend notes what is asked of the reference.
type spyBackend struct {
	backend.Go
	epochs []backend.EpochPlan
}

type spySession struct {
	backend.Session
	of *spyBackend
}

func (b *spyBackend) Open(p backend.Problem) (backend.Session, error) {
	s, err := b.Go.Open(p)
	return spySession{s, b}, err
}

func (s spySession) Epoch(e backend.EpochPlan) (backend.EpochResult, error) {
	s.of.epochs = append(s.of.epochs, e)
	return s.Session.Epoch(e)
}

func TestMasksChangeEveryMiniBatch(t *testing.T) {
	cfg := variants()["stable"]
	spy := &spyBackend{}
	_, report, err := recipe.Run(context.Background(), cfg, small(), spy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(spy.epochs) != cfg.Epochs {
		t.Fatalf("%d epochs, want %d", len(spy.epochs), cfg.Epochs)
	}
	for i, e := range spy.epochs {
		if e.Mask == nil || e.Mask.FirstStep != uint32(i*13) || e.Mask.Keep != report.Epochs[i].Q || !e.Mask.Restrict {
			t.Errorf("epoch %d: mask %+v, want step %d and q %v", i+1, e.Mask, i*13, report.Epochs[i].Q)
		}
	}
}

func TestDivergenceIsAnError(t *testing.T) {
	cfg := recipe.CrossEntropy()
	cfg.LR, cfg.WeightDecay = 1e6, 1
	_, _, err := recipe.Run(context.Background(), cfg, small(), backend.Go{}, nil)
	if !errors.Is(err, backend.ErrDiverged) || !strings.Contains(err.Error(), "epoch ") {
		t.Errorf("error %v, want ErrDiverged with its epoch", err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, r, err := recipe.Run(ctx, variants()["au"], small(), backend.Go{}, func(tr *recipe.Training) error {
		if len(tr.Summary().Epochs) == 2 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(r.Epochs) != 2 {
		t.Errorf("error %v after %d epochs", err, len(r.Epochs))
	}
}

// TestCountsOfTheRows: with cdf rows au weighs by the scores of the current head on the training rows, which this test
// counts plainly.
func TestCountsOfTheRows(t *testing.T) {
	in := small()
	cfg := variants()["au, counts of the rows"]
	got, _ := mustRun(t, cfg, in)
	counts := make([]float64, 20)
	pass := head.NewPass(in.Current, in.Train.N(), head.Gonum{})
	z := pass.Forward(in.Current, in.Train.Chunk(nil, 0, in.Train.N()), in.Train.N())
	for i := range in.Train.N() {
		p := slices.Clone(z[i*in.Train.K : (i+1)*in.Train.K])
		slices.Sort(p)
		var sum float64
		for _, v := range p {
			sum += math.Exp(float64(v - p[len(p)-1]))
		}
		margin := (1 - math.Exp(float64(p[len(p)-2]-p[len(p)-1]))) / sum
		counts[min(int(20*margin), 19)]++
	}
	plain := cfg
	plain.CDF = ""
	batch, _ := mustRun(t, plain, in)
	in.CDF = counts
	want, _ := mustRun(t, plain, in)
	if !slices.Equal(got.Layers[0].W, want.Layers[0].W) || slices.Equal(got.Layers[0].W, batch.Layers[0].W) {
		t.Error("the counts are not those of the rows under the current head")
	}
	in.CDF, in.Current = nil, nil
	cfg.Head = recipe.HeadLinear
	_, err := recipe.New(cfg, in, backend.Go{})
	if err == nil || !strings.Contains(err.Error(), `cdf "rows", but no current head is given`) {
		t.Errorf("got %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	for want, edit := range map[string]func(*recipe.Config){
		`loss "cee"`:                   func(c *recipe.Config) { c.Loss = "cee" },
		`head "best", allowed current`: func(c *recipe.Config) { c.Head = "best" },
		"epochs 0, allowed 1..":        func(c *recipe.Config) { c.Epochs = 0 },
		"batch 0":                      func(c *recipe.Config) { c.Batch = 0 },
		"lr NaN":                       func(c *recipe.Config) { c.LR = math.NaN() },
		"momentum 1":                   func(c *recipe.Config) { c.Momentum = 1 },
		`cdf "x", allowed batch, rows`: func(c *recipe.Config) { c.CDF = "x" },
		`cdf "rows", allowed with the loss au: the loss is ce`: func(c *recipe.Config) { c.CDF = recipe.CDFRows },
		"au of the CSFs msp and margin, allowed is one": func(c *recipe.Config) {
			c.CDF, c.Loss = recipe.CDFRows, "au + au{csf:margin}"
		},
		"mixup 2":            func(c *recipe.Config) { c.Mixup = 2 },
		`schedule: kind "x"`: func(c *recipe.Config) { c.Schedule = optim.Schedule{Kind: "x"} },
		"interleave: share 1": func(c *recipe.Config) {
			c.Interleave = &recipe.Interleave{Loss: "ce", Share: 1}
		},
		`interleave: loss "x"`:         func(c *recipe.Config) { c.Interleave = &recipe.Interleave{Loss: "x"} },
		"no current head":              nil,
		"maccal: gamma -1":             func(c *recipe.Config) { *c = recipe.MaCCalStable(); c.MaCCal.Gamma = -1 },
		`maccal: measure "x"`:          func(c *recipe.Config) { *c = recipe.MaCCalStable(); c.MaCCal.Measure = "x" },
		"maccal: start 0.4":            func(c *recipe.Config) { *c = recipe.MaCCalStable(); c.MaCCal.Start = 0.4 },
		"maccal: decay from eta_first": func(c *recipe.Config) { *c = recipe.MaCCalStable(); c.MaCCal.EtaLast = 0 },
		`measure "scaled" with the printed sign`: func(c *recipe.Config) {
			*c = recipe.MaCCalPrinted()
			c.MaCCal.Measure = recipe.MeasureScaled
		},
		`measure "masked" with the printed sign`: func(c *recipe.Config) {
			*c = recipe.MaCCalPrinted()
			c.MaCCal.Measure = recipe.MeasureMasked
		},
	} {
		cfg, in := recipe.CrossEntropy(), small()
		if edit == nil {
			in.Current = nil
		} else {
			edit(&cfg)
		}
		if _, err := recipe.New(cfg, in, backend.Go{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestEveryPartOfMaCCalCanBeSwitchedOff: each switch gives another training, and without masks the rest has no effect
// on the weights.
func TestEveryPartOfMaCCalCanBeSwitchedOff(t *testing.T) {
	base := variants()["stable"]
	whole, _ := mustRun(t, base, small())
	for name, edit := range map[string]func(*recipe.MaCCal){
		"masks":          func(m *recipe.MaCCal) { m.Masks = false },
		"restriction":    func(m *recipe.MaCCal) { m.Restrict = false },
		"adaptive":       func(m *recipe.MaCCal) { m.Adaptive = false },
		"decaying bound": func(m *recipe.MaCCal) { m.Decay, m.Gamma = false, 0.5 },
		"scaling":        func(m *recipe.MaCCal) { m.Scale = false },
		"measurement":    func(m *recipe.MaCCal) { m.Measure = recipe.MeasurePlain },
		"sign":           func(m *recipe.MaCCal) { m.Reversed, m.Measure = false, recipe.MeasurePlain },
	} {
		cfg := base
		m := *base.MaCCal
		cfg.MaCCal = &m
		edit(&m)
		h, r := mustRun(t, cfg, small())
		if same(h, whole) {
			t.Errorf("%s: switching it off changes nothing", name)
		}
		if name == "adaptive" && r.Epochs[5].NextQ != m.Start {
			t.Errorf("q %v without adaption, want %v", r.Epochs[5].NextQ, m.Start)
		}
	}
	off := base
	m := *base.MaCCal
	m.Masks = false
	off.MaCCal = &m
	plain := base
	plain.MaCCal = nil
	a, _ := mustRun(t, off, small())
	b, _ := mustRun(t, plain, small())
	if !same(a, b) {
		t.Error("without masks the weights are not those of the plain bottleneck")
	}
}
