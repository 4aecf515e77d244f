package rule

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"
)

// eager is a rule whose evaluations have their bounds at once; asked counts them.
type eager struct {
	Rule
	asked int
}

func (r *eager) Evaluate(pane int64) (Evaluation, bool, error) {
	j, ok, err := r.Rule.Evaluate(pane)
	if err != nil || !ok {
		return j, ok, err
	}
	r.asked++
	j, err = j.bounded()
	j.Bounded = nil
	return j, ok, err
}

// lazy is a rule that counts the bounds that are asked for.
type lazy struct {
	Rule
	asked int
}

func (r *lazy) Evaluate(pane int64) (Evaluation, bool, error) {
	j, ok, err := r.Rule.Evaluate(pane)
	if of := j.Bounded; of != nil {
		j.Bounded = func() (Evaluation, error) {
			r.asked++
			return of()
		}
	}
	return j, ok, err
}

// TestBoundsWhereTheyCount: an interval that is resampled costs ten times as much as all else of a pane. A rule that
// has it only where it decides or is shown says the same at every pane as one that always has it.
func TestBoundsWhereTheyCount(t *testing.T) {
	cfg := Config{Name: "r", Measure: SmECE, Signal: stage.SignalRaw, Rows: 300, MinRows: 100, Fire: .12, Clear: .1,
		Reference: Pinned, ReferenceRows: 1000, For: 20, ClearFor: 20}
	for name, set := range map[string]func(c *Config){
		Threshold:           func(*Config) {},
		Threshold + " sure": func(c *Config) { c.Interval = true },
		Reference:           func(c *Config) { c.Kind, c.Fire, c.Clear = Reference, .02, .01 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Kind = Threshold
			set(&cfg)
			x := testContext(cfg)
			of := func(r Rule) *entry { return &entry{context: x, rule: r, alert: &stage.Alert{Rule: cfg.Name}} }
			all, some := &eager{Rule: newRule(x)}, &lazy{Rule: newRule(x)}
			want, got := of(all), of(some)
			s, changes := New(x.env, []Config{cfg}), 0
			rng := rand.New(rand.NewPCG(1, 47))
			for at := range int64(120) {
				set, _ := drawnSet(t, x.env, rng, 50)
				in := &stage.Pane{Index: at, End: (at + 1) * x.env.Pane, Labelled: 50,
					Cells: []stage.Cell{{PredictionPane: at, Set: set}}}
				for _, e := range []*entry{want, got} {
					e.alert.Change = nil
					if err := s.evaluate(e, in); err != nil {
						t.Fatal(err)
					}
				}
				if !reflect.DeepEqual(got.alert, want.alert) {
					t.Fatalf("pane %d: %+v, want %+v", at, got.alert, want.alert)
				}
				if a := got.alert.Change; a != nil {
					changes++
					if *a.ValueLo >= a.Value || *a.ValueHi <= a.Value {
						t.Errorf("%.4f, %.4f to %.4f", a.Value, *a.ValueLo, *a.ValueHi)
					}
				}
			}
			if t.Logf("%d changes, %d bounds of %d", changes, some.asked, all.asked); some.asked >= all.asked*3/4 {
				t.Errorf("%d bounds of %d evaluations", some.asked, all.asked)
			}
		})
	}
}
