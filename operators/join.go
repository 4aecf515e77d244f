package operators

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// JoinConfig configures Join.
type JoinConfig struct {
	Wait    int64    // a label joins if its event time is at most this after the prediction's, ns
	MaxRows int      // waiting predictions and labels; the oldest to arrive goes out first
	Slices  []string // configured slice columns, in order
}

// Join keeps predictions until their label comes, and labels until their prediction comes. A label joins every
// waiting prediction of its id (of its model, where it names one), and the first label wins. With one prediction and
// one label of an id, whether they join depends on event times alone, so it does not matter which topic is read
// first. Arrival matters in two cases: the bound on rows, when it is hit (what it pushes out is counted), and several
// versions under one id with labels that name no version (docs/architecture.md, limits).
type Join struct {
	cfg    JoinConfig
	out    *pipeline.Out
	counts *pipeline.Counts
	w      waiting
	build  map[groupKey]*builder
	order  []*builder
	joined int64   // rows of the batch at hand
	match  []int32 // labels that fit the prediction at hand
}

// NewJoin returns the operator.
func NewJoin(cfg JoinConfig, out *pipeline.Out, counts *pipeline.Counts) *Join {
	j := &Join{cfg: cfg, out: out, counts: counts, build: map[groupKey]*builder{}}
	j.w.reset(len(cfg.Slices))
	return j
}

// Process implements pipeline.Operator: predictions pass on, joined rows follow as Labelled batches.
func (j *Join) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) error {
	var err error
	if b.Kind == arrowio.Labels {
		err = j.labels(b)
	} else {
		j.predictions(b)
		err = emit(b)
	}
	if err != nil {
		return err
	}
	return j.flush(emit)
}

func (j *Join) predictions(b *arrowio.Batch) {
	n := int64(0)
	for i := range b.N {
		if !good(b, i) {
			continue
		}
		if b.IDs == nil || (b.Label != nil && b.Label[i] >= 0) {
			n++ // labelled already
			continue
		}
		key, _ := modelOf(b, i)
		if j.w.hasPrediction(b.IDs[i], key) {
			j.counts.Add(pipeline.CountDuplicates, 1)
			b.Reject = rejectRow(b.Reject, b.N, i, "duplicate")
			continue
		}
		n++
		e := j.w.add(b.IDs[i])
		j.w.setPrediction(e, b, i, key, j.cfg.Slices)
		j.matchLabel(e)
		j.evict()
	}
	j.counts.Add(pipeline.CountPredictions, n)
}

// matchLabel joins a new prediction with the first label that came before it, as if it had been there first.
func (j *Join) matchLabel(e int32) {
	p := &j.w.entries[e]
	j.match = j.match[:0]
	for l, ok := j.w.first(p.id); ok && l >= 0; l = j.w.entries[l].chain {
		lab := &j.w.entries[l]
		if lab.label >= 0 && (!lab.named || names(j.w.models[lab.model], j.w.models[p.model])) && j.inTime(p.ts, lab.labelTS) {
			j.match = append(j.match, l)
		}
	}
	// The chain has the newest first; one that is out of range leaves the prediction to the next.
	for i := len(j.match) - 1; i >= 0; i-- {
		l := j.match[i]
		lab := j.w.entries[l]
		j.w.entries[l].used = true
		joined := int(lab.label) < p.k
		j.pair(e, lab.labelTS, lab.label)
		// A label that names no version may serve further versions' predictions of this id; it leaves by age.
		if lab.named && j.w.models[lab.model].Version != "" {
			j.w.remove(l)
		}
		if joined {
			return
		}
	}
}

func (j *Join) labels(b *arrowio.Batch) error {
	if b.IDs == nil || b.Label == nil {
		return fmt.Errorf("labels batch without id or label column passed the decoder")
	}
	n := int64(0)
	defer func() { j.counts.Add(pipeline.CountLabels, n) }()
	for i := range b.N {
		if !good(b, i) {
			continue
		}
		n++
		key, named := modelOf(b, i)
		met := false
		for e, ok := j.w.first(b.IDs[i]); ok && e >= 0; {
			next := j.w.entries[e].chain
			p := &j.w.entries[e]
			if p.label < 0 && (!named || names(key, j.w.models[p.model])) && j.inTime(p.ts, b.TS[i]) {
				met = true
				if int(b.Label[i]) >= p.k {
					j.rejectLabel(b, i, p.k)
				} else {
					j.pair(e, b.TS[i], b.Label[i])
				}
			}
			e = next
		}
		if !met {
			e := j.w.add(b.IDs[i])
			j.w.setLabel(e, b.TS[i], b.Label[i], key, named)
			j.evict()
		}
	}
	return nil
}

// names reports whether a label for key l is one for predictions of p: it may leave the version, or both, open.
func names(l, p arrowio.ModelKey) bool {
	return (l.Model == "" || l.Model == p.Model) && (l.Version == "" || l.Version == p.Version)
}

// rejectLabel counts a label whose range could only be checked against its prediction; the message goes to
// the dead-letter topic.
func (j *Join) rejectLabel(b *arrowio.Batch, i, k int) {
	j.counts.AddReason(pipeline.CountRejected, ReasonLabelRange, 1)
	j.out.DeadLetter(ReasonLabelRange, fmt.Sprintf("label %d, allowed [0, %d)", b.Label[i], k), []int{i})
}

func (j *Join) inTime(prediction, label pipeline.Time) bool { return label-prediction <= j.cfg.Wait }

// pair moves waiting prediction e, now labelled, to the batch of its model version.
func (j *Join) pair(e int32, labelTS pipeline.Time, label int32) {
	p := &j.w.entries[e]
	if int(label) >= p.k {
		j.counts.AddReason(pipeline.CountRejected, ReasonLabelRange, 1)
		j.out.DeadLetter(ReasonLabelRange, fmt.Sprintf("an earlier label %d, allowed [0, %d)", label, p.k), nil)
		return
	}
	gk := groupKey{p.model, p.k, p.probs}
	g := j.build[gk]
	if g == nil {
		g = newBuilder(j.w.models[p.model], p.k, p.probs, j.cfg.Slices)
		j.build[gk] = g
	}
	if g.b.N == 0 {
		j.order = append(j.order, g)
	}
	g.add(&j.w, p, labelTS, label)
	j.joined++
	j.w.remove(e)
}

func (j *Join) flush(emit pipeline.Emit) error {
	for _, g := range j.order {
		if err := emit(&g.b); err != nil {
			return err
		}
		g.reset()
	}
	j.order = j.order[:0]
	j.counts.Add(pipeline.CountJoined, j.joined)
	j.joined = 0
	return nil
}

func (j *Join) evict() {
	for j.w.live > j.cfg.MaxRows {
		if !j.w.entries[j.w.oldest].used { // a label that has served is no loss
			j.counts.Add(pipeline.CountEvicted, 1)
		}
		j.w.remove(j.w.oldest)
	}
}

// Advance implements pipeline.Operator: what has waited too long goes, in order of arrival.
func (j *Join) Advance(_ context.Context, wm pipeline.Time, _ pipeline.Emit) error {
	j.expire(wm)
	if j.w.compact() {
		clear(j.build) // keyed by the old indices; empty between batches
	}
	return nil
}

func (j *Join) expire(wm pipeline.Time) {
	for j.w.oldest >= 0 {
		e := &j.w.entries[j.w.oldest]
		if e.label < 0 && e.ts+j.cfg.Wait >= wm || e.label >= 0 && e.labelTS+j.cfg.Wait >= wm {
			return
		}
		if e.label < 0 {
			j.counts.Add(pipeline.CountExpired, 1)
		} else if !e.used {
			j.counts.Add(pipeline.CountOrphans, 1)
		}
		j.w.remove(j.w.oldest)
	}
}

// State implements pipeline.Operator: everything that waits.
func (j *Join) State() pipeline.State { return &j.w }

func rejectRow(reject []string, n, i int, reason string) []string {
	if reject == nil {
		reject = make([]string, n)
	}
	reject[i] = reason
	return reject
}
