package validate

import (
	"context"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Reasons why a row takes no part that need more than the row's own bytes.
const (
	ReasonClasses = "classes" // K differs from that of the model version
	ReasonTooFar  = "too_far_ahead"
	ReasonNoID    = "no_id" // the join needs ids
)

// farthest bounds event times, from 1681-08 to 2258-05: what is added to them, panes and waits, stays in 64 bits.
const farthest = 9_100_000_000_000_000_000

// Config configures the operator.
type Config struct {
	Classes  map[string]int // declared K by model; others are learnt from the first message
	MaxAhead int64          // a row's event time may be this much after its record's timestamp, ns
	NeedID   bool           // predictions without a label wait for one by id
}

// Operator rejects rows that cannot be right and sends the message that held them to the dead-letter topic.
type Operator struct {
	cfg    Config
	k      map[arrowio.ModelKey]int
	out    *pipeline.Out
	counts *pipeline.Counts
}

// New returns the operator of a shard.
func New(cfg Config, h pipeline.Host) *Operator {
	return &Operator{cfg: cfg, k: map[arrowio.ModelKey]int{}, out: h.Out, counts: h.Counts}
}

// Stage is the operator as a shard registers it.
func (v *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "validate", Operator: v, Version: 1, Take: v.take}
}

// Process implements pipeline.Operator.
func (v *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	var reject []string
	for i := range b.N {
		if !b.Good(i) {
			continue
		}
		if reason := v.check(b, i); reason != "" {
			if reject == nil {
				reject = b.Rejecting()
			}
			reject[i] = reason
		}
	}
	if reject != nil {
		b = b.WithReject(reject)
	}
	v.report(b)
	return emit(b)
}

// check returns the reason why row i cannot be right, "" where it can.
func (v *Operator) check(b *arrowio.Batch, i int) string {
	if b.TS[i] < -farthest || b.TS[i] > farthest {
		return arrowio.TimeRange
	}
	// Both times are positive, so their difference is in range.
	if v.cfg.MaxAhead > 0 && b.Origin.Time > 0 && b.TS[i] > 0 && b.TS[i]-b.Origin.Time > v.cfg.MaxAhead {
		return ReasonTooFar
	}
	key, named := b.ModelOf(i)
	k, known := v.k[key]
	if !known {
		k, known = v.cfg.Classes[key.Model]
	}
	if b.Kind == arrowio.Labels {
		if b.Label[i] < 0 || (named && known && int(b.Label[i]) >= k) {
			return arrowio.LabelRange
		}
		return ""
	}
	switch {
	case known && b.K != k:
		return ReasonClasses
	case b.Label != nil && int(b.Label[i]) >= b.K:
		return arrowio.LabelRange
	case v.cfg.NeedID && b.IDs == nil && (b.Label == nil || b.Label[i] < 0):
		return ReasonNoID
	}
	if _, learnt := v.k[key]; !learnt {
		v.k[key] = b.K
	}
	return ""
}

// report counts the rejected rows and names them in the dead letter of their message.
func (v *Operator) report(b *arrowio.Batch) {
	reasons := map[string]int64{}
	for i, r := range b.Reject {
		if r != "" {
			reasons[r]++
			v.out.Reject(i, r, "")
		}
	}
	for r, n := range reasons {
		v.counts.AddReason(pipeline.CountRejected, r, n)
	}
}

// Advance implements pipeline.Operator.
func (v *Operator) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }

// take learns what another shard knows (pipeline.Stage).
func (v *Operator) take(from pipeline.Operator, _ func(arrowio.ID) bool) error {
	for key, k := range from.(*Operator).k {
		if _, known := v.k[key]; !known {
			v.k[key] = k
		}
	}
	return nil
}

// State implements pipeline.Operator: the learnt numbers of classes.
func (v *Operator) State() pipeline.State { return v }

// AppendState implements pipeline.State.
func (v *Operator) AppendState(dst []byte) ([]byte, error) {
	keys := slices.SortedFunc(maps.Keys(v.k), arrowio.ModelKey.Compare)
	dst = binenc.AppendUvarint(dst, uint64(len(keys)))
	for _, k := range keys {
		dst = binenc.AppendString(dst, k.Model)
		dst = binenc.AppendString(dst, k.Version)
		dst = binenc.AppendUvarint(dst, uint64(v.k[k]))
	}
	return dst, nil
}

// RestoreState implements pipeline.State.
func (v *Operator) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	v.k = map[arrowio.ModelKey]int{}
	for range r.Count(3, 1<<20) {
		key := arrowio.ModelKey{Model: r.String(binenc.MaxName), Version: r.String(binenc.MaxName)}
		v.k[key] = int(r.Uvarint())
	}
	return r.Err()
}
