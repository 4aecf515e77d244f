package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// plan is the world of one seed: its configuration, its stream, and how it is driven.
type plan struct {
	seed               uint64
	yaml               string
	stream             stream
	shards, partitions int
	batch              int
	bias               float64 // probability that predictions are read before labels
	displaced          int     // rows are shuffled within blocks of so many; 0: they come in order
	spoiled            bool
	crashes            int // about how often each task loses what came since its checkpoint
	restarts           int // how often all tasks begin anew from a checkpoint
	orders             bool
	heads              bool
	inline             bool
	idle               bool // inputs fall idle in the middle
}

// methods are those of refits; each is tried by some seeds.
var methods = []string{"temperature", "auto", "platt", "vector", "class_temperature", "beta", "isotonic", "histogram",
	"spline",
	"parameterised_temperature", "ensemble_temperature", "temperature_sbece", "matrix", "dirichlet",
	"intra_order_preserving",
	"scaling_binning", "histogram_width", "metacal_miscoverage", "metacal_accuracy", "temperature+cls", "none"}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 42))
	p := &plan{
		seed:       seed,
		shards:     pick(r, 1, 2, 3, 5),
		partitions: pick(r, 1, 1, 2),
		batch:      pick(r, 2, 7, 25, 60, 200),
		bias:       pick(r, .5, .5, .9, .1),
		displaced:  pick(r, 0, 0, 60, 300),
		spoiled:    seed%3 == 0,
		inline:     seed%11 == 5,
		orders:     seed%4 == 1,
		heads:      seed%3 == 1,
		idle:       seed%5 == 2,
	}
	switch seed % 4 {
	case 0:
		p.crashes = 10
	case 2:
		p.restarts = 4
	}
	p.stream = newStream(p, r)
	p.yaml = p.configuration(r)
	return p
}

func newStream(p *plan, r *rand.Rand) stream {
	s := stream{
		rows:      1600 + 300*r.IntN(4),
		step:      pick(r, int64(6e7), 9e7, 12e7),
		maxLag:    pick(r, 2*second, 10*second, 30*second),
		lateShare: pick(r, 0, 0, .02),
		wait:      120 * second,
		columns:   r.IntN(3),
		values:    pick(r, 2, 3, 6),
		features:  p.heads,
		probs:     r.IntN(5) == 0,
		weighs:    r.IntN(3) == 0,
	}
	if p.idle {
		s.gap = 90 * second
	}
	s.models = []modelPlan{{"m", pick(r, 2, 3, 4, 6), []string{"v1"}}}
	if r.IntN(3) == 0 {
		s.models[0].versions = []string{"v1", "v2"}
		s.rows += 400
	}
	if r.IntN(4) == 0 {
		s.models = append(s.models, modelPlan{"other model/ü", 3, []string{""}})
		s.rows += 400
	}
	s.phases = []phase{{sharpness: pick(r, 1.0, 1, 2), unlabelled: pick(r, 0, .1), only: -1}}
	change := phase{from: .35 + .1*r.Float64(), sharpness: pick(r, 2.5, 3, .4), only: -1}
	switch seed := p.seed; {
	case seed%6 == 0: // the model becomes wrong, at the same confidence
		change.sharpness, change.wrong = 1, .35
	case seed%6 == 1 && s.columns > 0: // one slice
		change.only = 0
	case seed%6 == 2: // classes are more frequent than they were
		s.phases[0].sharpness = 1
		change.sharpness, change.tilt = 1, .5
	}
	s.phases = append(s.phases, change)
	switch r.IntN(4) {
	case 0: // it ends
		s.phases = append(s.phases, phase{from: .75, sharpness: 1, only: -1})
	case 1: // labels stop
		s.phases = append(s.phases, phase{from: .75, sharpness: change.sharpness, unlabelled: .9, only: -1})
	case 2:
		s.phases = append(s.phases, phase{from: .7, sharpness: 1.6, wrong: .2, only: -1})
	}
	return s
}

// configuration writes the file of a seed.
func (p *plan) configuration(r *rand.Rand) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("group: oracle")
	if p.inline {
		line(`topics: {labels: ""}`)
	}
	if r.IntN(3) == 0 {
		line("models: [{name: m, classes: %d}]", p.stream.models[0].k)
	}
	columns := []string{"region", "tenant"}[:p.stream.columns]
	line("slices: {columns: [%s], max_keys: %d, half_life: %s}", strings.Join(columns, ", "), pick(r, 1000, 3, 2),
		pick(r, "1m", "1h"))
	line("event_time: {pane: %s, allowed_lateness: %s, max_ahead: 24h, forget_after: %s}",
		pick(r, "10s", "10s", "10s", "5s"),
		pick(r, "0s", "10s"), pick(r, "0s", "1m", "720h"))
	line("join: {wait: 2m, max_rows: %d, memory_bytes: %d, remember: %d}", pick(r, 1000000, 1000000, 150),
		pick(r, 0, 33554432, 65536), pick(r, 0, 100, 100000))
	line("stats: {bins: %d, extra_bins: %s, resamples: 20}", pick(r, 15, 10), pick(r, "[]", "[12]", "[20, 5]"))
	line("sample: {rows_per_cell: %d, rows: 4096, slice_rows: 4096}", pick(r, 1024, 1024, 30))
	line("windows:\n- {name: tumbling, kind: time, size: 1m}")
	line("%s", pick(r, "- {name: sliding, kind: time, size: 1m, slide: 20s}", "- {name: rows, kind: rows, rows: 300}",
		"- {name: rows-tumbling, kind: rows, rows: 300, every: 300}"))
	p.alarm(r, line)
	p.rules(r, line)
	p.refit(r, line)
	if p.seed%2 == 0 || p.orders {
		line("calibrated: {enabled: true, columns: %s}", pick(r, "probs", "top1"))
	}
	if p.heads {
		line("heads: {shadow: true, alpha: 0.05, min_rows: 200, max_rows: 500, max_ece_rise: 0.05, "+
			"max_accuracy_drop: 0.1, max_aurc_rise: 0.05, watch: %s}", pick(r, "30s", "1h"))
	}
	if p.heads || p.seed%6 == 0 {
		line("trigger: {enabled: true, rows: 300, min_rows: 150, reference_rows: 400, max_ece: 0.05, " +
			"max_accuracy_drop: 0.06, max_aurc_rise: 0.1,")
		line("  z: 2, for: 20s, data_rows: 300, cooldown: 60s, budget: 2, budget_period: 1h, " +
			"shadow_after: 20s, deadline: 60s}")
	}
	return b.String()
}

func (p *plan) alarm(r *rand.Rand, line func(string, ...any)) {
	line("alarm: {enabled: %v, false_alarm_every: %s, reference: %s, reference_rows: %d, "+
		"matured: %s, slices: %v, fdr: %g,",
		r.IntN(8) > 0, pick(r, "1h", "24h", "8760h"), pick(r, "none", "none", "pinned", "rolling"), pick(r, 200, 400),
		pick(r, "0s", "0s", "45s"), r.IntN(4) > 0, pick(r, .05, .3))
	line("  epsilon_ece: %g, clear_rows: %d, clear_for: %s, quiet_rows: %d, hold: %s, max_weight: %g, bins: %d}",
		pick(r, .02, .03), pick(r, 100, 300), pick(r, "0s", "20s"), pick(r, 0, 400, 50000), pick(r, "0s", "1m"),
		pick(r, 1.0, 2), pick(r, 15, 10))
	line("unlabelled: {enabled: true, reference: %s, reference_rows: %d, alpha: %g, slices: true, classes: slices}",
		pick(r, "pinned", "rolling"), pick(r, 200, 400), pick(r, .001, .05))
}

// rules has each kind with each measure: a few of them at a time.
func (p *plan) rules(r *rand.Rand, line func(string, ...any)) {
	all := []string{
		"kind: excess, fire: 0.05, clear: 0.03",
		"kind: excess, fire: 0.08, clear: 0.02, signal: raw",
		"kind: reference, measure: ece, fire: 0.04, clear: 0.02",
		"kind: reference, measure: smece, fire: 0.04, clear: 0.02, reference: rolling",
		"kind: reference, measure: accuracy, fire: 0.05, clear: 0.02, signal: raw",
		"kind: reference, measure: nll, fire: 0.1, clear: 0.05",
		"kind: reference, measure: curve, fire: 0.1, clear: 0.05, signal: raw",
		"kind: distance, measure: ks, fire: 0.1, clear: 0.05, alpha: 0.001",
		"kind: distance, measure: psi, score: margin, fire: 0.1, clear: 0.05, alpha: 0.01",
		"kind: distance, measure: wasserstein, score: negent, fire: 0.03, clear: 0.01, reference: rolling, alpha: 0.01",
		"kind: distance, measure: js, fire: 0.02, clear: 0.01, alpha: 0.01",
		"kind: distance, measure: psi, score: class, fire: 0.05, clear: 0.02, alpha: 0.01",
		"kind: distance, measure: js, score: class, fire: 0.02, clear: 0.01, alpha: 0.01",
		"kind: estimate, measure: accuracy, fire: 0.05, clear: 0.02",
		"kind: estimate, measure: ece, fire: 0.05, clear: 0.02",
		"kind: estimate, measure: miss, fire: 0.05, clear: 0.02",
		"kind: threshold, measure: accuracy, side: below, fire: 0.7, clear: 0.75, interval: true",
		"kind: threshold, measure: nll, fire: 0.9, clear: 0.7, signal: raw",
		"kind: threshold, measure: ece, fire: 0.06, clear: 0.04",
		"kind: threshold, measure: smece, fire: 0.06, clear: 0.04",
		"kind: threshold, measure: confidence, fire: 0.8, clear: 0.75, signal: raw",
		"kind: threshold, measure: coverage, side: below, fire: 0.7, clear: 0.8, age: 50s",
	}
	line("rules:")
	for i, rule := range all {
		if r.IntN(4) > 0 {
			continue
		}
		line("- {name: r%d, %s, rows: %d, min_rows: 150, warmup_rows: %d, reference_rows: %d, "+
			"for: %s, clear_for: %s, severity: %s, slices: %v}",
			i, rule, pick(r, 200, 400), pick(r, 0, 200), pick(r, 200, 500), pick(r, "0s", "20s"), pick(r, "0s", "20s"),
			pick(r, "info", "warning", "critical"), r.IntN(3) > 0)
	}
	if r.IntN(3) > 0 {
		line("- {name: last, rows: 400, min_rows: 200, warmup_rows: 200, fire: 0.05, clear: 0.03, " +
			"for: 10s, clear_for: 10s, slices: true}")
	} else {
		line("- {name: last, rows: 300, min_rows: 100, warmup_rows: 100, fire: 0.07, clear: 0.03, " +
			"for: 0s, clear_for: 0s}")
	}
}

func (p *plan) refit(r *rand.Rand, line func(string, ...any)) {
	shift := "off"
	if p.seed%6 == 2 {
		shift = pick(r, "candidate", "at_once", "at_once")
	}
	method := methods[p.seed%uint64(len(methods))]
	line("refit: {method: %s, period: %s, on_alarm: %v, fresh_rows: %d, min_rows: 150, max_rows: 1500, "+
		"test_share: 0.3, delay: %d,",
		method, pick(r, "1m", "90s", "0s"), r.IntN(5) > 0, pick(r, 150, 300), pick(r, 1, 2, 3))
	line("  alpha: 0.05, validation_rows: %d, validation_for: %s, min_nll_gain: 0.001, max_ece_rise: 0.02, "+
		"max_accuracy_drop: 0.02,",
		pick(r, 0, 400, 1000), pick(r, "0s", "2m"))
	line("  shadow_for: %s, canary_share: %g, canary_for: %s, rollback_panes: %d, cooldown: %s, "+
		"follow: %v, label_shift: %s}",
		pick(r, "0s", "20s"), pick(r, 0, 0, .3), pick(r, "30s", "1m"), pick(r, 0, 20, 10000),
		pick(r, "20s", "2m", "5m"), r.IntN(2) == 0, shift)
}
