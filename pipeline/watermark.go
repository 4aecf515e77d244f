package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Watermark follows the event time of a shard's inputs:
//
//	w(input) = max(newest event time seen - allowed lateness, newest control record)
//	w(shard) = min over the inputs that are not idle
//
// An input that the repartition stage fills has the rows of several sources, each with a clock of its own, of which one
// may be hours behind another; there
//
//	w(input)  = min over the sources that are not idle of w(source)
//	w(source) = max(newest of its rows - allowed lateness, its newest control record)
//
// and the input is idle only when all its sources are: a source may be silent because it is not read.
//
// Control records (header plumbline-watermark) are part of the stream, so what they close is the same live and
// in replay. Idleness is the one thing taken from the wall clock: it can make rows late (they are counted and
// still in every sum), never lose them.
type Watermark struct {
	Lateness int64 // ns
	// After: extra panes closed after the newest row's when all inputs are idle.
	After int64
	// Tolerance is by how much the shard's watermark must advance, in ns, before the panes of a silent model are
	// closed; 0: all models share the shard's watermark.
	Tolerance int64
	// Clocks has a watermark for each model.
	Clocks  *Clocks
	in      []inputMark
	sources map[sourceKey]*sourceMark
	now     Time
}

type inputMark struct {
	newest, control Time
	idle            bool
	made            []madeOf // unkeyed topics that it is made of, by name
	left            bool     // its sources do not count until one speaks again
	alone           bool     // no unkeyed topic is configured for it: it has only the sources of the checkpoint
	only            []string // the unkeyed topics that are configured; nil = any may be a source
	// marks are what bySource looks at, nil for a source that has sent nothing; nil: they are to be found anew.
	marks []*sourceMark
}

// madeOf is an unkeyed topic from which the repartition stage fills an input.
type madeOf struct {
	topic string // with its id
	of    int32  // its partitions
}

// name is the topic's name without its id.
func (m *madeOf) name() string { return nameOf(m.topic) }

func nameOf(topic string) string {
	name, _, _ := strings.Cut(topic, "@")
	return name
}

// NewWatermark returns the watermark of a shard with so many inputs, at NoTime; lateness is in ns.
func NewWatermark(inputs int, lateness int64) *Watermark {
	w := &Watermark{Lateness: lateness, in: make([]inputMark, inputs), now: NoTime}
	w.Clocks = newClocks(w)
	for i := range w.in {
		w.in[i] = inputMark{newest: NoTime, control: NoTime}
	}
	return w
}

// Observe takes note of a row's event time. The watermark advances after a whole message, so rows of one message never
// make each other late.
func (w *Watermark) Observe(in Input, t Time) {
	w.in[in].newest = max(w.in[in].newest, t)
	w.in[in].idle = false
}

// Control takes note of a control record.
func (w *Watermark) Control(in Input, t Time) {
	w.in[in].control = max(w.in[in].control, t)
	w.in[in].idle = false
}

// observeBatch advances the clock of the input, and of the source, to the newest row that is not rejected. Labels that
// name their model advance that model's clock too, even before their prediction has come; for other rows the stages do
// that.
func (w *Watermark) observeBatch(in Input, src *sourceMark, b *arrowio.Batch, rejects Rejects) {
	newest, label, of := NoTime, NoTime, ""
	for i, t := range b.TS {
		if rejects != nil && rejects[i] != "" {
			continue
		}
		newest = max(newest, t)
		if b.Kind != arrowio.Labels {
			continue
		}
		if m, _ := b.ModelOf(i); m.Model != of {
			w.Clocks.label(of, label)
			of, label = m.Model, NoTime
		}
		label = max(label, t)
	}
	w.Clocks.label(of, label)
	if newest != NoTime {
		w.Observe(in, newest)
		if src != nil {
			src.newest = max(src.newest, newest)
		}
	}
}

// believe refuses a control record whose time is too far in the future, by the rule for rows plus one pane: it may
// promise the end of the current pane.
func (w *Watermark) believe(r *Record, t Time, paneLength int64) error {
	most := w.Tolerance
	switch {
	case most == 0:
	case r.Ahead:
		return fmt.Errorf("the record's timestamp, %s, is in the future", Format(r.Time))
	case r.Time > 0 && t > 0 && t-r.Time > most+paneLength:
		return fmt.Errorf("header %s: %s is further ahead of the record's timestamp, %s, than event_time.max_ahead",
			WatermarkHeader, Format(t), Format(r.Time))
	}
	return nil
}

// Idle notes that an input has been read to its end and brings nothing. An input with sources counts as idle only if
// all of them are.
func (w *Watermark) Idle(in Input) { w.in[in].idle = true }

// Leave says that an input is no longer made of an unkeyed topic. Sources that a checkpoint still knows then hold the
// input back only if they send again.
func (w *Watermark) Leave(in Input) { w.in[in].left, w.in[in].alone = true, true }

// Only names an unkeyed topic whose partitions are the sources of an input; other names are not believed. It may be
// called for several.
func (w *Watermark) Only(in Input, topic string) {
	w.in[in].only, w.in[in].marks = append(w.in[in].only, topic), nil
}

// awake forgets which inputs are idle: each has to prove it again.
func (w *Watermark) awake() {
	for i := range w.in {
		w.in[i].idle = false
	}
}

// AllIdle reports whether every input is exhausted.
func (w *Watermark) AllIdle() bool {
	for i, m := range w.in {
		if _, held := w.bySource(Input(i)); held || !m.idle {
			return false
		}
	}
	return true
}

// Advance recomputes the watermark, which never falls, and reports whether it rose. If all inputs are idle, it goes to
// the end of the newest row's pane plus After panes, so that silence holds nothing back.
func (w *Watermark) Advance(paneLength int64) (Time, bool) {
	t := w.next(paneLength)
	if t <= w.now {
		return w.now, false
	}
	w.now = t
	return t, true
}

// next computes the watermark from the current state of the inputs.
func (w *Watermark) next(paneLength int64) Time {
	t, newest, control, active := EndTime, NoTime, NoTime, false
	for i, m := range w.in {
		newest, control = max(newest, m.newest), max(control, m.control)
		own, held := w.bySource(Input(i))
		if !held {
			if m.idle {
				continue
			}
			own = max(m.control, minus(m.newest, w.Lateness))
		}
		active = true
		t = min(t, own)
	}
	if !active {
		t = control
		if newest != NoTime {
			t = max(t, (PaneIndex(newest, paneLength)+1+w.After)*paneLength)
		}
	}
	return t
}

// inputs returns the watermark of each input.
func (w *Watermark) inputs() []Time {
	out := make([]Time, len(w.in))
	for i, m := range w.in {
		own, held := w.bySource(Input(i))
		if !held {
			own = max(m.control, minus(m.newest, w.Lateness))
		}
		out[i] = own
	}
	return out
}

// Now returns the watermark.
func (w *Watermark) Now() Time { return w.now }

func minus(t Time, d int64) Time {
	if t < NoTime+d {
		return NoTime
	}
	return t - d
}

// AppendState appends uvarint inputs, each varint newest event time of a good row, varint newest control record (ns;
// −2⁶³ = none); varint watermark; 2 varint first open label panes of the shard and of silent models, 2 varint panes of
// control records by input; uvarint models, each string name, 5 varint: newest event time and the shard's pane then, by
// input, and the first open label pane; then the sources of the repartition stage, with the position and the clock of
// each. Idleness is not saved: an input proves it anew.
func (w *Watermark) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(w.in)))
	for _, m := range w.in {
		dst = binenc.AppendVarint(dst, m.newest)
		dst = binenc.AppendVarint(dst, m.control)
	}
	return w.appendSources(w.Clocks.append(binenc.AppendVarint(dst, w.now))), nil
}

// RestoreState implements State.
func (w *Watermark) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	n := r.Count(2, 16)
	for i := range n {
		m := inputMark{newest: r.Varint(), control: r.Varint()}
		if i < len(w.in) {
			m.left, m.alone, m.only = w.in[i].left, w.in[i].alone, w.in[i].only
			w.in[i] = m
		}
	}
	w.now = r.Varint()
	w.Clocks.restore(&r)
	w.restoreSources(&r, n)
	return r.Err()
}

// Every model of a shard has a clock of its own, so that no row of one model makes another's late:
//
//	w(model) = min(w(shard), min over the inputs that are not idle of w(model, input))
//	w(model, input) = max(newest of its rows - allowed lateness, the input's newest control record)
//
// What a model's own rows do not close, silence does. When w(shard) has advanced by more than the tolerance and an
// input brought no row of the model, w(model, input) is at least w(shard) - the tolerance; an input that never brought
// one, as that of labels where there are none, does not count from then on. The tolerance is how far an event time may
// be ahead of its record's timestamp, so what a clock that is ahead did to w(shard) closes no pane of a clock that is
// right, and a clock that is slow is followed while its rows come. All is counted in panes, so that it depends on the
// order of rows and on nothing else.
type modelClock struct {
	newest [2]Time  // by input
	seen   [2]int64 // the shard's first open pane when the input last brought a row
	closed int64    // label panes of the model before this one are complete
}

// Clocks has the clocks of a shard's models.
type Clocks struct {
	w     *Watermark
	by    map[string]*modelClock
	moved []string // models with a row since the last close
	born  []string // models whose first row came since then, after the shard had closed panes
	at    clockState
}

func newClocks(w *Watermark) *Clocks {
	none := clockState{closed: noPane, floor: noPane, control: [2]int64{noPane, noPane}}
	return &Clocks{w: w, by: map[string]*modelClock{}, at: none}
}

// ModelClosed is the first open label pane of a model, where it differs from the shard's; Forgotten if the shard has
// forgotten the model.
type ModelClosed struct {
	Model  string
	Closed int64
}

// Forgotten says, in place of a pane, that the shard has forgotten the model.
const Forgotten = math.MaxInt64

// forgetClock is how long after the tolerance a silent model's clock is forgotten; maxClocks bounds their number.
// Models beyond it share their shard's clock until one is forgotten.
const (
	forgetClock = int64(60 * 60 * 1e9)
	maxClocks   = 1000
)

// noPane comes before every pane.
const noPane = math.MinInt64

// Observe notes the event time of a model's prediction or, on input Labels, of its label.
func (k *Clocks) Observe(in Input, model string, t Time) {
	if k.w.Tolerance == 0 || int(in) >= len(k.w.in) {
		return
	}
	c := k.by[model]
	if c == nil {
		if len(k.by) >= maxClocks {
			return
		}
		c = &modelClock{newest: [2]Time{NoTime, NoTime}, seen: [2]int64{k.at.closed, k.at.closed}, closed: noPane}
		k.by[model] = c
		if k.at.closed != noPane {
			k.born = append(k.born, model)
		}
	}
	k.observe(c, in, model, t)
}

func (k *Clocks) observe(c *modelClock, in Input, model string, t Time) {
	c.newest[in] = max(c.newest[in], t)
	c.seen[in] = k.at.closed
	if n := len(k.moved); n == 0 || k.moved[n-1] != model {
		k.moved = append(k.moved, model)
	}
}

// label notes labels that name their model, for a model that has a clock already: labels alone start none.
func (k *Clocks) label(model string, t Time) {
	if c := k.by[model]; c != nil && model != "" {
		k.observe(c, Labels, model, t)
	}
}

// ClosedOf returns a model's first label pane that is still open. All panes of a new model are open.
func (k *Clocks) ClosedOf(model string) int64 {
	if k.w.Tolerance == 0 {
		return k.at.closed
	}
	if c := k.by[model]; c != nil {
		return c.closed
	}
	if len(k.by) >= maxClocks {
		return k.at.closed
	}
	return noPane
}

// paneOf returns a model's first open pane by its own clock. If it is the only model, the shard's: its labels need not
// name it.
func (k *Clocks) paneOf(c *modelClock, paneLength int64) int64 {
	pane := k.at.closed
	if len(k.by) == 1 {
		return pane
	}
	idle := k.w.AllIdle()
	if idle { // nothing is held back by silence
		newest := PaneIndex(max(c.newest[0], c.newest[1]), paneLength) + 1 + k.w.After
		pane = min(pane, max(newest, k.at.control[0], k.at.control[1]))
	}
	for i, m := range k.w.in {
		let := k.letGo(c.seen[i])
		if m.idle || c.newest[i] == NoTime && let != noPane {
			continue
		}
		own := paneOrNone(minus(c.newest[i], k.w.Lateness), paneLength)
		pane = min(pane, max(own, k.at.control[i], let))
	}
	if idle {
		pane = max(pane, k.letGo(max(c.seen[0], c.seen[1])))
	}
	return pane
}

// letGo returns the first pane that silence leaves open: that of the shard's watermark less the tolerance, if the
// model has been silent since before it; else noPane. seen is the shard's first open pane when the model last sent a
// row.
func (k *Clocks) letGo(seen int64) int64 {
	if k.at.floor > seen {
		return k.at.floor
	}
	return noPane
}

// close recomputes the first open panes after Advance. changed lists the models whose pane changed, gone those whose
// clock is forgotten.
func (k *Clocks) close(paneLength int64) (changed, gone []string) {
	at := k.state(paneLength)
	all := at != k.at
	if k.at.closed == noPane && at.closed != noPane {
		k.begin(at.closed)
	}
	k.at, k.born = at, nil
	if !all && len(k.moved) == 0 {
		return nil, nil
	}
	if all {
		gone = k.forget(paneLength)
		k.moved = slices.AppendSeq(k.moved[:0], maps.Keys(k.by))
	}
	slices.Sort(k.moved)
	for _, name := range slices.Compact(k.moved) {
		c := k.by[name]
		if closed := k.paneOf(c, paneLength); closed > c.closed {
			c.closed = closed
			changed = append(changed, name)
		}
	}
	k.moved = k.moved[:0]
	return changed, gone
}

// takeOver merges in the clocks of a shard whose rows may come here: of two clocks of a model it keeps the one further
// behind.
func (k *Clocks) takeOver(old *Clocks) {
	for _, name := range slices.Sorted(maps.Keys(old.by)) {
		from, c := old.by[name], k.by[name]
		if c == nil {
			if len(k.by) < maxClocks {
				clone := *from
				k.by[name] = &clone
			}
			continue
		}
		for i, newest := range from.newest {
			if c.newest[i] == NoTime || newest != NoTime && newest < c.newest[i] {
				c.newest[i] = newest
			}
		}
		c.closed = min(c.closed, from.closed)
	}
}

// goOn starts from a restored watermark.
func (k *Clocks) goOn(wm Time, paneLength int64) {
	k.w.now = wm
	k.at = k.state(paneLength)
	k.begin(k.at.closed)
}

// begin is called when the shard has its first watermark: models that sent rows before count as seen at that moment.
func (k *Clocks) begin(closed int64) {
	for _, c := range k.by {
		c.seen = [2]int64{closed, closed}
	}
}

// forget drops the clocks of models without rows. A clock that has panes open stays: the watermark may have jumped, and
// the panes of a model that has no clock would be closed only with the next rows.
func (k *Clocks) forget(paneLength int64) (gone []string) {
	since := paneOrNone(minus(k.w.now, k.w.Tolerance+forgetClock), paneLength)
	for name, c := range k.by {
		last := paneOrNone(max(c.newest[0], c.newest[1]), paneLength)
		if since > max(c.seen[0], c.seen[1]) && since > last && c.closed > last {
			gone = append(gone, name)
			delete(k.by, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// clockState is the part of the state that all models share.
type clockState struct {
	closed, floor int64 // first open pane of the shard, and of silent models
	control       [2]int64
	idle          uint64
}

func (k *Clocks) state(paneLength int64) clockState {
	floor := minus(k.w.now, k.w.Tolerance)
	at := clockState{closed: paneOrNone(k.w.now, paneLength), floor: paneOrNone(floor, paneLength),
		control: [2]int64{noPane, noPane}, idle: k.w.IdleInputs()}
	for i := range min(len(k.w.in), len(at.control)) {
		at.control[i] = paneOrNone(k.w.in[i].control, paneLength)
	}
	return at
}

// IdleInputs implements Ordered.
func (w *Watermark) IdleInputs() (set uint64) {
	for i, m := range w.in {
		if m.idle {
			set |= 1 << i
		}
	}
	return set
}

// SetIdleInputs implements Ordered.
func (w *Watermark) SetIdleInputs(set uint64) {
	for i := range w.in {
		w.in[i].idle = set>>i&1 == 1
	}
}

func paneOrNone(t Time, length int64) int64 {
	if t == NoTime {
		return noPane
	}
	return PaneIndex(t, length)
}

// apart lists the models whose first open pane is not the shard's, and the forgotten ones.
func (k *Clocks) apart(gone []string) (out []ModelClosed) {
	for name, c := range k.by {
		if c.closed != k.at.closed {
			out = append(out, ModelClosed{name, c.closed})
		}
	}
	for _, name := range gone {
		out = append(out, ModelClosed{name, Forgotten})
	}
	slices.SortFunc(out, func(a, b ModelClosed) int { return cmp.Compare(a.Model, b.Model) })
	return out
}

// Least returns the lowest watermark of all models, but at most the tolerance behind the shard's. What waits for rows
// of any model waits until then.
func (k *Clocks) Least(paneLength int64) Time {
	t := k.w.now
	if len(k.by) > 1 {
		for _, c := range k.by {
			if c.closed == noPane {
				t = NoTime
			} else {
				t = min(t, c.closed*paneLength)
			}
		}
	}
	return max(t, minus(k.w.now, k.w.Tolerance))
}

func (k *Clocks) append(dst []byte) []byte {
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, k.at.closed), k.at.floor)
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, k.at.control[0]), k.at.control[1])
	dst = binenc.AppendUvarint(dst, uint64(len(k.by)))
	for _, name := range slices.Sorted(maps.Keys(k.by)) {
		c := k.by[name]
		dst = binenc.AppendString(dst, name)
		for _, v := range []int64{c.newest[0], c.newest[1], c.seen[0], c.seen[1], c.closed} {
			dst = binenc.AppendVarint(dst, v)
		}
	}
	return dst
}

func (k *Clocks) restore(r *binenc.Reader) {
	k.at = clockState{closed: r.Varint(), floor: r.Varint(), control: [2]int64{r.Varint(), r.Varint()}}
	k.by, k.moved, k.born = map[string]*modelClock{}, nil, nil
	for range r.Count(6, maxClocks) {
		name := r.String(maxPaneName)
		k.by[name] = &modelClock{newest: [2]Time{r.Varint(), r.Varint()}, seen: [2]int64{r.Varint(), r.Varint()},
			closed: r.Varint()}
	}
}
