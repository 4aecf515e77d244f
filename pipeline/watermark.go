package pipeline

import "github.com/plumbline/plumbline/internal/binenc"

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
// and the input is idle only when all its sources are: that nothing comes may be because nobody reads them.
//
// Control records (header plumbline-watermark) are part of the stream, so what they close is the same live and
// in replay. Idleness is the one thing taken from the wall clock: it can make rows late (they are counted and
// still in every sum), never lose them.
type Watermark struct {
	Lateness int64
	in       []inputMark
	sources  map[sourceKey]*sourceMark
	now      Time
}

type inputMark struct {
	newest, control Time
	idle            bool
	topic           string // the unkeyed topic that the latest message was made of; "" = none
	of              int32  // its partitions
	left            bool   // its sources do not count until one speaks again
	alone           bool   // no unkeyed topic is configured for it: it has no sources but those of before
}

// NewWatermark returns the watermark of a shard with so many inputs, at NoTime.
func NewWatermark(inputs int, lateness int64) *Watermark {
	w := &Watermark{Lateness: lateness, in: make([]inputMark, inputs), now: NoTime}
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

// Idle takes note that an input brings nothing: it is exhausted, unless it has sources that are not.
func (w *Watermark) Idle(in Input) { w.in[in].idle = true }

// Leave is for an input that no unkeyed topic is configured for: the sources that a checkpoint knows of from before,
// which nobody reads any more, hold it back no longer. They count again from the next message on that one of them
// sends.
func (w *Watermark) Leave(in Input) { w.in[in].left, w.in[in].alone = true, true }

// awake takes back that inputs are exhausted: they have to prove it anew.
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

// Advance recomputes the watermark, which never falls, and reports whether it rose. Where all inputs are
// idle it goes to the end of the pane (of the given length) of the newest row: nothing is held back by silence.
func (w *Watermark) Advance(paneLength int64) (Time, bool) {
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
			t = max(t, (PaneIndex(newest, paneLength)+1)*paneLength)
		}
	}
	if t <= w.now {
		return w.now, false
	}
	w.now = t
	return t, true
}

// Now returns the watermark.
func (w *Watermark) Now() Time { return w.now }

func minus(t Time, d int64) Time {
	if t < NoTime+d {
		return NoTime
	}
	return t - d
}

// AppendState implements State. Idleness is not saved: an input proves it anew.
func (w *Watermark) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(w.in)))
	for _, m := range w.in {
		dst = binenc.AppendVarint(dst, m.newest)
		dst = binenc.AppendVarint(dst, m.control)
	}
	return w.appendSources(binenc.AppendVarint(dst, w.now)), nil
}

// RestoreState implements State.
func (w *Watermark) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	n := r.Count(2, 16)
	for i := range n {
		m := inputMark{newest: r.Varint(), control: r.Varint()}
		if i < len(w.in) {
			m.left, m.alone = w.in[i].left, w.in[i].alone
			w.in[i] = m
		}
	}
	w.now = r.Varint()
	w.restoreSources(&r, n)
	return r.Err()
}
