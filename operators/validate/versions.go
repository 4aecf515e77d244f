package validate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Limits bound the model versions of a shard: each takes memory here and in its model task.
type Limits struct {
	Max       int // versions known at a time; 0 = no bound
	PerMinute int // new ones, by the records' time; 0 = no bound
}

const (
	// Burst is how many minutes' new versions may come at once.
	Burst = 10
	// together is how many versions of a model may have rows within that time when a new one is no made-up name.
	together = 2
	// silentFor is how long a version has no rows before a new one may take its place where there is no other, ns.
	silentFor = int64(time.Hour)
	minute    = int64(time.Minute)
)

// version is the state of a model version in a shard.
type version struct {
	seen    int64  // time of the newest record with rows of it
	classes int    // K; 0 = undecided
	origin  string // how K was learnt
	votes   []vote // while undecided
	suspect int    // rows of logits that were probabilities, one after the other; not kept
}

// vote is how many messages had rows of K classes.
type vote struct {
	classes  int
	messages int
	last     int64 // offset of the latest of them
	origin   string
}

// What decides K: so many messages, which lead by so many. Beyond the most messages those with the most have it.
const (
	agreeing     = 3
	leading      = 2
	mostMessages = 32
	mostClasses  = 4 // different K that have a vote
)

// table are the versions that a shard knows.
type table struct {
	Limits
	by  map[arrowio.ModelKey]*version
	now int64 // time of the newest record
	// The time was restored, and only a record that is refused for its time can have had it: states were written that
	// follow such records. The next record sets it back. By the clock of the machine, as that refusal is.
	ahead  bool
	credit int64 // new versions that may come, in minutes / PerMinute ns each
	// silent is, by model, since when no version of it was silent longer when they were last looked through; "" is of
	// all models.
	silent map[string]int64
	// busy is, by model with more versions than go together, until when it surely has them.
	busy    map[string]int64
	own     map[string]int // versions by model
	lastKey arrowio.ModelKey
	last    *version
	open    []*version // of which the message at hand has votes
	voted   arrowio.Origin
}

func newTable(l Limits) table {
	return table{Limits: l, by: map[arrowio.ModelKey]*version{}, credit: Burst * minute * int64(l.PerMinute),
		silent: map[string]int64{}, busy: map[string]int64{}, own: map[string]int{}}
}

// find returns a version, nil where it is not known.
func (t *table) find(key arrowio.ModelKey) *version {
	if t.last == nil || t.lastKey != key {
		t.lastKey, t.last = key, t.by[key]
	}
	return t.last
}

// tick moves the time to that of a record.
func (t *table) tick(now int64) {
	if t.ahead && now > 0 {
		t.setBack(now)
	}
	if now <= t.now {
		return
	}
	if t.now > 0 {
		since := min(now-t.now, Burst*minute)
		t.credit = min(t.credit+since*int64(t.PerMinute), Burst*minute*int64(t.PerMinute))
	}
	t.now = now
}

// setBack replaces a time that lay ahead, also as that of the rows of versions: else none of them could ever be silent.
func (t *table) setBack(now int64) {
	t.ahead, t.now = false, min(t.now, now)
	clear(t.silent)
	clear(t.busy)
	for _, v := range t.by {
		v.seen = min(v.seen, t.now)
	}
}

// admit makes a version known, or says why it may not be. Of all rows of a version that may not, only the first looks
// through the others.
func (t *table) admit(key arrowio.ModelKey) (v *version, why string) {
	often := func() string {
		return fmt.Sprintf("%s version %q is new, and more than %d new model versions a minute have come "+
			"(versions.new_per_minute)", key.Model, key.Version, t.PerMinute)
	}
	spent := t.PerMinute > 0 && t.credit < minute
	if spent && t.madeUp(key.Model) {
		return nil, often()
	}
	own := t.own[key.Model]
	full, of := t.Max > 0 && len(t.by) >= pipeline.VersionsFor(t.Max, own), "" // whose version makes room
	var oldest arrowio.ModelKey
	if full {
		if pipeline.VersionsFor(t.Max, own) < t.Max {
			of = key.Model
		}
		var ok bool
		if oldest, ok = t.silentest(of); !ok {
			return nil, fmt.Sprintf("%s version %q is new, and %d model versions had rows in the last %s, %d of this "+
				"model (versions.max: %d)", key.Model, key.Version, len(t.by), time.Duration(silentFor), own, t.Max)
		}
	}
	if t.PerMinute > 0 && !t.deploys(key.Model) {
		if spent {
			return nil, often()
		}
		t.credit -= minute
	}
	if full {
		t.forget(oldest)
	}
	key = arrowio.ModelKey{Model: strings.Clone(key.Model), Version: strings.Clone(key.Version)}
	v = &version{seen: t.now}
	t.by[key], t.lastKey, t.last = v, key, v
	t.own[key.Model]++
	return v, ""
}

// madeUp reports whether it is known without a look at the versions that a new one of a model counts.
func (t *table) madeUp(model string) bool { return t.own[model] == 0 || t.now < t.busy[model] }

// deploys reports whether a new version of a model is one that takes the place of another: however many models get
// theirs at once, that is no flood of made-up names.
func (t *table) deploys(model string) bool {
	if t.madeUp(model) {
		return false
	}
	n, until := 0, int64(math.MaxInt64)
	for key, v := range t.by {
		if ends := v.seen + Burst*minute; key.Model == model && ends > t.now {
			n, until = n+1, min(until, ends)
		}
	}
	if n > together {
		t.busy[model] = until
		return false
	}
	return true
}

// silentest is the version that has been silent longest, of a model or of all (""). ok is false where that is not long
// enough to forget it.
func (t *table) silentest(of string) (oldest arrowio.ModelKey, ok bool) {
	if since := t.silent[of]; since > 0 && t.now-since < silentFor {
		return oldest, false
	}
	since := int64(0)
	for key, v := range t.by {
		if of != "" && key.Model != of {
			continue
		}
		if since == 0 || v.seen < since || v.seen == since && key.Compare(oldest) < 0 {
			oldest, since = key, max(v.seen, 1)
		}
	}
	t.silent[of] = since
	return oldest, since > 0 && t.now-since >= silentFor
}

// forget makes room for another version. It comes back as a new one.
func (t *table) forget(key arrowio.ModelKey) {
	delete(t.by, key)
	if t.own[key.Model]--; t.own[key.Model] == 0 {
		delete(t.own, key.Model)
		delete(t.silent, key.Model)
		delete(t.busy, key.Model)
	}
	t.lastKey, t.last = arrowio.ModelKey{}, nil
}

// counted counts the versions of each model.
func (t *table) counted() {
	clear(t.silent)
	clear(t.busy)
	clear(t.own)
	for key := range t.by {
		t.own[key.Model]++
	}
}

// takes reports whether a version takes rows of k classes, and if not, which number it expects.
func (v *version) takes(k int) (ok bool, expected string) {
	switch {
	case v.classes == k:
		return true, ""
	case v.classes != 0:
		return false, fmt.Sprintf("expected K = %d %s", v.classes, v.origin)
	}
	for i := range v.votes {
		if v.votes[i].classes == k {
			return true, ""
		}
	}
	if len(v.votes) < mostClasses {
		return true, ""
	}
	return false, fmt.Sprintf("expected K = %d %s", v.leader().classes, v.leader().origin)
}

// count takes rows of k classes as a vote of their record.
func (t *table) count(v *version, k int, offset int64, o *arrowio.Origin) {
	if v.classes != 0 {
		return
	}
	i := slices.IndexFunc(v.votes, func(x vote) bool { return x.classes == k })
	if i < 0 {
		i = len(v.votes)
		v.votes = append(v.votes, vote{classes: k, last: -1, origin: learntFrom(o)})
	}
	if v.votes[i].last == offset {
		return
	}
	v.votes[i].messages++
	v.votes[i].last = offset
	if !slices.Contains(t.open, v) {
		t.open = append(t.open, v)
	}
}

// settle decides by the votes of the message before. Not by each as it comes: of a message that was made of many
// records those of one number of classes come first.
func (t *table) settle() {
	for i, v := range t.open {
		v.decide()
		t.open[i] = nil
	}
	t.open = t.open[:0]
}

func (v *version) decide() {
	if len(v.votes) == 0 { // it was settled otherwise
		return
	}
	best, others, all := v.leader(), 0, 0
	for j := range v.votes {
		all += v.votes[j].messages
		if v.votes[j].classes != best.classes {
			others = max(others, v.votes[j].messages)
		}
	}
	if best.messages >= agreeing && best.messages >= others+leading || all >= mostMessages {
		v.classes, v.origin, v.votes = best.classes, best.origin, nil
	}
}

// leader has the most messages, the first of those with as many.
func (v *version) leader() *vote {
	best := &v.votes[0]
	for i := range v.votes {
		if v.votes[i].messages > best.messages {
			best = &v.votes[i]
		}
	}
	return best
}

func learntFrom(o *arrowio.Origin) string {
	text := fmt.Sprintf("as learnt from %s partition %d offset %d", o.Topic, o.Partition, o.Offset)
	if o.Time > 0 {
		text += " at " + pipeline.Format(o.Time)
	}
	return text
}

// merge learns what another shard knows.
func (t *table) merge(o *table) {
	t.now, t.credit, t.ahead = max(t.now, o.now), min(t.credit, o.credit), t.ahead || o.ahead
	for key, its := range o.by {
		own := t.by[key]
		if own == nil {
			own = &version{}
			t.by[key] = own
		}
		own.seen = max(own.seen, its.seen)
		if own.classes == 0 && (its.classes != 0 || own.votes == nil) {
			own.classes, own.origin, own.votes = its.classes, its.origin, slices.Clone(its.votes)
		}
	}
	t.last = nil
	t.counted()
}

// maxOrigin bounds the text of how K was learnt.
const maxOrigin = 1 << 13

func (t *table) append(dst []byte) []byte {
	t.settle()
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, t.now), t.credit)
	dst = binenc.AppendUvarint(dst, uint64(len(t.by)))
	for _, key := range slices.SortedFunc(maps.Keys(t.by), arrowio.ModelKey.Compare) {
		v := t.by[key]
		dst = binenc.AppendString(binenc.AppendString(dst, key.Model), key.Version)
		dst = binenc.AppendVarint(dst, v.seen)
		dst = binenc.AppendString(binenc.AppendUvarint(dst, uint64(v.classes)), v.origin)
		dst = binenc.AppendUvarint(dst, uint64(len(v.votes)))
		for i := range v.votes {
			x := &v.votes[i]
			dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(x.classes)), uint64(x.messages))
			dst = binenc.AppendString(binenc.AppendVarint(dst, x.last), x.origin)
		}
	}
	return dst
}

func (t *table) restore(r *binenc.Reader) {
	*t = newTable(t.Limits)
	t.now, t.credit = r.Varint(), min(r.Varint(), t.credit)
	for range r.Count(5, 1<<20) {
		key := arrowio.ModelKey{Model: r.String(binenc.MaxName), Version: r.String(binenc.MaxName)}
		v := &version{seen: r.Varint(), classes: int(r.Int("classes", 0, 1<<30)), origin: r.String(maxOrigin)}
		for range r.Count(4, mostClasses) {
			v.votes = append(v.votes, vote{classes: int(r.Int("classes", 0, 1<<30)),
				messages: int(r.Int("messages", 0, mostMessages)), last: r.Varint(), origin: r.String(maxOrigin)})
		}
		t.by[key] = v
	}
	t.counted()
}
