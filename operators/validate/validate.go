package validate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Reasons why a row takes no part that need more than the row's own bytes.
const (
	ReasonClasses = "classes" // K differs from that of the model version
	ReasonTooFar  = "too_far_ahead"
	ReasonAhead   = "record_ahead" // the record's timestamp is in the future
	ReasonNoID    = "no_id"        // the join needs ids
	ReasonModels  = "models"       // a new model version over the bounds
)

// farthest bounds event times, from 1681-08 to 2258-05, so that sums with panes and waits stay in 64 bits.
const farthest = 9_100_000_000_000_000_000

// Config configures the operator.
type Config struct {
	Classes  map[string]int // declared K by model; others are learnt from the first messages
	Ordered  *Ordered       // K that were settled for all shards; nil = none
	Limits   Limits
	MaxAhead int64 // a row's event time may be this much after its record's timestamp, ns
	NeedID   bool  // predictions without a label wait for one by id
	// Suspect is called where a hundred rows of logits one after the other were probabilities, of those that were
	// looked at, one of a batch. A softmax of them is far less sure than the model. It may be nil.
	Suspect func(key arrowio.ModelKey)
}

// suspects is the number of rows that are no accident.
const suspects = 100

// Operator rejects rows that cannot be right and sends the message that held them to the dead-letter topic.
type Operator struct {
	cfg     Config
	known   table
	orders  map[arrowio.ModelKey]Order
	ordered int               // changes of cfg.Ordered that orders has
	why     map[string]string // by reason, of the first row of the batch at hand
	noted   bool              // the row before was good, with the K that its version is known to have
	model   int32             // of that row, as in Batch.Model
	out     *pipeline.Out
	counts  *pipeline.Counts
}

// New returns the operator of a shard.
func New(cfg Config, h pipeline.Host) *Operator {
	return &Operator{cfg: cfg, known: newTable(cfg.Limits), why: map[string]string{}, out: h.Out, counts: h.Counts}
}

// Stage is the operator as a shard registers it.
func (v *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "validate", Operator: v, Version: 2, Take: v.take}
}

// Process implements pipeline.Operator.
func (v *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	v.begin(b)
	var reject []string
	for i := range b.N {
		if !b.Good(i) {
			v.explain(b, i)
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
	v.suspect(b)
	return emit(b)
}

// suspect looks at the first good row of logits.
func (v *Operator) suspect(b *arrowio.Batch) {
	if v.cfg.Suspect == nil || b.Probs || b.Kind == arrowio.Labels || b.Side == arrowio.Request || b.K < 2 {
		return
	}
	for i := range b.N {
		if !b.Good(i) {
			continue
		}
		key, _ := b.ModelOf(i)
		switch known := v.known.find(key); {
		case known == nil:
		case !arrowio.IsDistribution(b.Scores[i*b.K : (i+1)*b.K]):
			known.suspect = 0
		default:
			if known.suspect++; known.suspect%suspects == 0 {
				v.cfg.Suspect(key)
			}
		}
		return
	}
}

// Refused calls see for each row of a batch that a shard refuses, whatever it took before, with the reason and in words
// what its first row has and what is allowed.
func Refused(c Config, b *arrowio.Batch, see func(i int, reason, detail string)) {
	c.Limits = Limits{}
	v := &Operator{cfg: c, known: newTable(c.Limits), why: map[string]string{}}
	v.begin(b)
	for i := range b.N {
		var reason string
		if b.Good(i) {
			reason = v.check(b, i)
		} else {
			reason = b.Reject[i]
			v.explain(b, i)
		}
		if reason != "" {
			see(i, reason, v.why[reason])
		}
	}
}

// begin takes the time of the batch, and the numbers of classes that were settled since the last one.
func (v *Operator) begin(b *arrowio.Batch) {
	clear(v.why)
	v.noted = false
	if v.known.voted != b.Origin {
		v.known.settle()
		v.known.voted = b.Origin
	}
	v.known.last = nil // its key may share the memory of a message that is gone
	v.known.tick(v.timeOf(b))
	orders, changes := v.cfg.Ordered.since(v.ordered)
	if orders == nil {
		return
	}
	v.orders, v.ordered = orders, changes
	for key, version := range v.known.by {
		version.obey(v.orders[key])
	}
}

// timeOf is when a batch came; 0: nothing tells. What is refused for its time does not: it would set the clock ahead,
// and until that time has come no new version would be admitted.
func (v *Operator) timeOf(b *arrowio.Batch) int64 {
	if v.ahead(b) {
		return 0
	}
	if b.Origin.Time > 0 {
		return b.Origin.Time
	}
	for i := range b.N {
		if b.Good(i) && inRange(b.TS[i]) {
			return b.TS[i]
		}
	}
	return 0
}

// ahead reports whether the rows of a batch are refused because their record's timestamp is in the future.
func (v *Operator) ahead(b *arrowio.Batch) bool { return v.cfg.MaxAhead > 0 && b.Origin.Ahead }

func inRange(ts pipeline.Time) bool { return ts >= -farthest && ts <= farthest }

// obey takes the number of classes that was settled for all shards.
func (v *version) obey(o Order) {
	if o.Classes != 0 {
		v.classes, v.origin, v.votes = o.Classes, o.Origin, nil
	}
}

// check returns the reason why row i cannot be right, "" where it can.
func (v *Operator) check(b *arrowio.Batch, i int) string {
	if !inRange(b.TS[i]) {
		return v.refuse(arrowio.TimeRange, "ts = %d ns, allowed are %s to %s", b.TS[i], day(-farthest), day(farthest))
	}
	if v.ahead(b) {
		return v.refuse(ReasonAhead,
			"the record's timestamp %s is more than event_time.max_ahead, %s, ahead of the clock",
			second(b.Origin.Time), time.Duration(v.cfg.MaxAhead))
	}
	// Both times are positive, so their difference is in range.
	if v.cfg.MaxAhead > 0 && b.Origin.Time > 0 && b.TS[i] > 0 && b.TS[i]-b.Origin.Time > v.cfg.MaxAhead {
		return v.refuse(ReasonTooFar, "ts = %s is more than event_time.max_ahead, %s, after the record's timestamp %s",
			second(b.TS[i]), time.Duration(v.cfg.MaxAhead), second(b.Origin.Time))
	}
	if b.Side == arrowio.Request {
		return ""
	}
	if v.alike(b, i) {
		return v.checkRow(b, i)
	}
	v.noted = false
	key, named := b.ModelOf(i)
	if b.Kind == arrowio.Labels {
		if k := v.classes(key); b.Label[i] < 0 || (named && k > 0 && int(b.Label[i]) >= k) {
			return v.labelRange(b.Label[i], k)
		}
		return ""
	}
	if declared := v.cfg.Classes[key.Model]; declared > 0 && b.K != declared {
		return v.refuse(ReasonClasses, "K = %d, expected K = %d as the configuration declares (models)", b.K, declared)
	}
	known := v.known.find(key)
	if known != nil {
		if ok, expected := known.takes(b.K); !ok && v.cfg.Classes[key.Model] == 0 {
			return v.refuse(ReasonClasses, "K = %d, %s", b.K, expected)
		}
	}
	if reason := v.checkRow(b, i); reason != "" {
		return reason
	}
	reason := v.note(b, i, key, known)
	if v.noted = reason == "" && (v.cfg.Classes[key.Model] > 0 || v.known.last.classes > 0); b.Model != nil {
		v.model = b.Model[i]
	}
	return reason
}

// alike reports whether row i has the model version of the prediction before, which was good and whose K is known: the
// rest of check would say the same, and learn nothing.
func (v *Operator) alike(b *arrowio.Batch, i int) bool {
	return v.noted && (b.Model == nil || b.Model[i] == v.model)
}

// checkRow checks what rows of one model version do not share.
func (v *Operator) checkRow(b *arrowio.Batch, i int) string {
	switch {
	case b.Label != nil && int(b.Label[i]) >= b.K:
		return v.labelRange(b.Label[i], b.K)
	case v.cfg.NeedID && b.IDs == nil && (b.Label == nil || b.Label[i] < 0):
		return v.refuse(ReasonNoID, "neither id nor label, one is needed")
	}
	return ""
}

// note makes the version of a good row known, and learns its K.
func (v *Operator) note(b *arrowio.Batch, i int, key arrowio.ModelKey, known *version) (reason string) {
	if known == nil {
		var why string
		if known, why = v.known.admit(key); known == nil {
			return v.refuse(ReasonModels, "%s", why)
		}
		known.obey(v.orders[key])
		if ok, expected := known.takes(b.K); !ok && v.cfg.Classes[key.Model] == 0 {
			return v.refuse(ReasonClasses, "K = %d, %s", b.K, expected)
		}
	}
	known.seen = v.known.now
	if v.cfg.Classes[key.Model] == 0 {
		offset := b.Origin.Offset
		if b.Sources != nil {
			offset = b.Sources[i]
		}
		v.known.count(known, b.K, offset, &b.Origin)
	}
	return ""
}

// classes is the K that labels of a version are below; 0 while it is undecided: then the join compares a label with its
// prediction.
func (v *Operator) classes(key arrowio.ModelKey) int {
	if k := v.cfg.Classes[key.Model]; k > 0 {
		return k
	}
	if known := v.known.find(key); known != nil {
		return known.classes
	}
	return 0
}

// refuse notes why the first row of a reason is refused.
func (v *Operator) refuse(reason, why string, args ...any) string {
	if v.why[reason] == "" {
		v.why[reason] = fmt.Sprintf(why, args...)
	}
	return reason
}

// labelRange refuses a label of k classes; 0 where their number is not known.
func (v *Operator) labelRange(label int32, k int) string {
	if k == 0 {
		return v.refuse(arrowio.LabelRange, "label: %d; allowed are 0 and more", label)
	}
	return v.refuse(arrowio.LabelRange, "label: %d; allowed are 0 to %d", label, k-1)
}

// second is a time in UTC as people read it.
func second(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }

func day(ns int64) string { return time.Unix(0, ns).UTC().Format(time.DateOnly) }

// allowed is what rows need that their decoder has refused.
var allowed = map[string]string{
	arrowio.BadWeight: "allowed are those above 0, at most 2^20",
	arrowio.BadServed: "allowed are 0 to 1",
	arrowio.TimeRange: "ts: " + day(-farthest) + " to " + day(farthest),
}

// explain notes why the decoder has refused row i: the value, where the batch still has it, and what is allowed.
func (v *Operator) explain(b *arrowio.Batch, i int) {
	reason := b.Reject[i]
	if v.why[reason] != "" {
		return
	}
	has := ""
	switch reason {
	case arrowio.NullRow:
		has = strings.Join(b.Missing, ", ") + ": null or empty; every row must have one"
	case arrowio.NonfiniteScores:
		has = badScore(b.Scores[i*b.K:(i+1)*b.K], b.Probs)
	case arrowio.LabelRange:
		has = fmt.Sprintf("label: %s; allowed are 0 and more", b.BadLabel)
		if b.K > 0 {
			has = fmt.Sprintf("label: %s; allowed are 0 to %d, and null where not known", b.BadLabel, b.K-1)
		}
	case arrowio.BadWeight:
		has = fmt.Sprintf("weight: %g; ", b.Weight[i])
	case arrowio.BadServed:
		has = fmt.Sprintf("served confidence: %g; ", b.Served[i])
	}
	v.why[reason] = has + allowed[reason]
}

// badScore is what is wrong with the scores of a row. It begins at the last class: of a binary classifier's one score
// that is the one that was sent. A dead letter leaves out the value behind a colon where records may not be quoted.
func badScore(scores []float32, probs bool) string {
	sum := 0.0
	for k, x := range slices.Backward(scores) {
		switch {
		case probs && !(x >= 0 && x <= 1):
			return fmt.Sprintf("probability of class %d: %g; allowed are 0 to 1", k, x)
		case x != x || math.IsInf(float64(x), 0):
			return fmt.Sprintf("logit of class %d: %g; allowed are finite ones (mask by -1e9)", k, x)
		}
		sum += float64(x)
	}
	return fmt.Sprintf("sum of the probabilities: %.6g; allowed are 0.95 to 1.05", sum)
}

// report counts the rejected rows and names them in the dead letter of their message.
func (v *Operator) report(b *arrowio.Batch) {
	reasons, ahead := map[string]int64{}, map[arrowio.ModelKey]int64{}
	for i, r := range b.Reject {
		if r != "" {
			if r == ReasonTooFar || r == ReasonAhead {
				m, _ := b.ModelOf(i)
				ahead[m]++
			}
			reasons[r]++
			v.out.Reject(i, r, v.why[r])
		}
	}
	for r, n := range reasons {
		v.counts.AddReason(pipeline.CountRejected, r, n)
	}
	v.counts.AddModels(pipeline.CountAheadByModel, ahead)
}

// Advance implements pipeline.Operator.
func (v *Operator) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }

// take learns what another shard knows (pipeline.Stage).
func (v *Operator) take(from pipeline.Operator, _ func(arrowio.ID) bool) error {
	v.known.merge(&from.(*Operator).known)
	return nil
}

// State implements pipeline.Operator.
func (v *Operator) State() pipeline.State { return v }

// AppendState appends varint time of the newest record, varint new versions that may come (in minutes of
// versions.new_per_minute, ns); uvarint n, ascending string model, string version, varint time of its newest record,
// uvarint K (0 = undecided), string how it was learnt, uvarint votes, each uvarint K, uvarint messages, varint offset
// of the last, string how learnt.
func (v *Operator) AppendState(dst []byte) ([]byte, error) { return v.known.append(dst), nil }

// RestoreState implements pipeline.State. The numbers that were settled for all shards are read again from their table.
func (v *Operator) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	v.known.restore(&r)
	v.known.ahead = v.cfg.MaxAhead > 0 && v.known.now > time.Now().UnixNano()+v.cfg.MaxAhead
	v.orders, v.ordered = nil, 0
	return r.Close()
}
