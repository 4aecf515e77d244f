package model

import (
	"errors"
	"log/slog"
	"math"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// shards is what a task knows of the shards that write its partition: which of their messages it has, which label panes
// they have closed, and which of their states were lost.
type shards struct {
	all     []progress
	reached int64 // the furthest barrier so far
	apart   int64 // Config.Apart
	losses  losses
	counts  *pipeline.Counts
	log     *slog.Logger
}

// progress is the state that a shard has reported: the epoch and number of its last message, the first label pane that
// it has not closed, and whether it is idle. past are earlier epochs, whose messages no longer count.
type progress struct {
	epoch  uint64
	past   []uint64
	seq    uint64
	closed int64
	idle   bool
	// models are the first open panes of those that the shard has had rows of: sameAsShard, or another.
	models map[string]int64
}

// sameAsShard is the place of a model whose clock is that of the shard.
const sameAsShard = math.MaxInt64

// closedOf is the first label pane of a model that the shard has not closed, and whether its rows have come from there.
func (p *progress) closedOf(model string) (pane int64, known bool) {
	pane, known = p.models[model]
	if pane == sameAsShard || !known {
		pane = p.closed
	}
	return pane, known
}

// punctuate notes which label panes the shard has closed.
func (p *progress) punctuate(m *pipeline.PaneMessage) {
	p.closed = max(p.closed, m.Closed)
	for name := range p.models {
		p.models[name] = sameAsShard
	}
	for _, c := range m.Models {
		if c.Closed == pipeline.Forgotten {
			delete(p.models, c.Model)
			continue
		}
		p.know(c.Model, c.Closed)
	}
}

func (p *progress) know(model string, closed int64) {
	if p.models == nil {
		p.models = map[string]int64{}
	}
	p.models[model] = closed
}

// hear takes note of a message, and reports whether it counts: it is no repeat, and not of a state that was given up.
func (s *shards) hear(m *pipeline.PaneMessage) bool {
	s.grow(m.Of)
	p := &s.all[m.Shard]
	if !s.lives(p, m) {
		return false
	}
	if m.Seq <= p.seq {
		s.counts.Add(CountRepeats, 1)
		return false
	}
	if lost := m.Seq - p.seq - 1; lost > 0 {
		// The messages are gone from the log. The task can only report that and go on.
		s.counts.Add(CountLostPanes, int64(lost))
		s.log.Error("pane messages were lost: retention of the panes topic, or it was emptied", "shard", m.Shard,
			"last", p.seq, "next", m.Seq)
	}
	p.seq, p.idle = m.Seq, s.current(m) && m.Punctuation && m.Idle
	s.counts.Add(CountPanes, 1)
	return true
}

// current reports whether a message is not of before there were more shards: what it closed may be open again.
func (s *shards) current(m *pipeline.PaneMessage) bool { return m.Of == len(s.all) }

// close takes note of what a punctuation says that its shard has closed.
func (s *shards) close(m *pipeline.PaneMessage) {
	s.all[m.Shard].punctuate(m)
	s.losses.bound(s.reached, s.all[m.Shard].closed, m.Length)
	s.reached = s.barrier()
}

// know notes that a shard has had rows of a model.
func (s *shards) know(shard int, model string) {
	p := &s.all[shard]
	if _, known := p.models[model]; !known && s.apart > 0 {
		p.know(model, sameAsShard)
	}
}

// grow takes note of how many shards there are; they only become more.
func (s *shards) grow(of int) {
	if of <= len(s.all) {
		return
	}
	// There are more from here on. Each reports again which label panes it has closed.
	for i := range s.all {
		s.all[i].closed, s.all[i].idle, s.all[i].models = minPane, false, nil
	}
	for len(s.all) < of {
		s.all = append(s.all, progress{closed: minPane})
	}
}

// barrier returns the first label pane that some shard has not closed. An idle shard has sent everything that it has,
// so it does not count: a partition without rows must not stop a model. If all shards are idle, everything has come.
// The barrier never moves back. Rows that a shard sends for an earlier pane after it wakes up are late.
func (s *shards) barrier() int64 {
	pane, _ := s.least("")
	return max(s.reached, pane)
}

// barrierOf is the barrier of one model, which has a clock of its own where it shares shards with others.
func (s *shards) barrierOf(m *model) int64 {
	pane, apart := s.least(m.name)
	if !apart {
		pane = max(s.reached, pane)
	}
	return max(m.reached, pane)
}

// least is the first label pane of a model that some shard has not closed. If the model has a clock of its own in some
// shard, a shard without rows of it may soon get rows that are as far behind. So what that shard has closed counts for
// the model only after the time that models wait for each other.
func (s *shards) least(model string) (pane int64, apart bool) {
	pane, last, any := int64(math.MaxInt64), int64(minPane), false
	tolerant := pane
	for i := range s.all {
		p := &s.all[i]
		closed, known := p.closedOf(model)
		last, apart = max(last, closed), apart || closed != p.closed
		if p.idle {
			continue
		}
		pane, any = min(pane, closed), true
		if !known && closed != minPane {
			closed -= s.apart
		}
		tolerant = min(tolerant, closed)
	}
	switch {
	case !any:
		pane = last
	case apart:
		pane = tolerant
	}
	return pane, apart
}

// lives reports whether a message belongs to the shard's current state. The log has one order: a message of an unknown
// epoch begins this epoch, and messages of earlier epochs come from a process that does not know it yet.
func (s *shards) lives(p *progress, m *pipeline.PaneMessage) bool {
	switch {
	case s.losses.undone(m) && p.epoch != 0 && p.epoch != m.Epoch: // the shard goes on in another epoch
		s.stale(m)
		return false
	case s.losses.undone(m):
		s.counts.Add(CountUndone, 1)
		return false
	case p.seq == 0:
		p.epoch = m.Epoch
		if s.losses.midway {
			p.seq = m.Seq - 1
		}
		return true
	case m.Epoch == p.epoch:
		return true
	case slices.Contains(p.past, m.Epoch):
		s.stale(m)
		return false
	}
	s.counts.Add(CountEpochs, 1)
	s.log.Warn("a shard goes on with a new state: its messages are counted from 1 again", "shard", m.Shard,
		"messages_before", p.seq)
	p.past = append(p.past[max(0, len(p.past)+1-maxLosses):], p.epoch)
	p.epoch, p.seq, p.models = m.Epoch, 0, nil
	return true
}

var errStale = errors.New("a process has the state that was given up, or a copy of it came back: bring back the one " +
	"that was begun since, or end this process, or let the shard begin anew (plumbline state reset)")

// stale drops a message of a state that another one has taken the place of: a process still has that state.
func (s *shards) stale(m *pipeline.PaneMessage) {
	s.counts.Add(CountStale, 1)
	s.log.Warn("rows of a shard count nowhere", "shard", m.Shard, faultlog.Err(errStale))
}

func (s *shards) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(s.all)))
	for _, p := range s.all {
		dst = p.append(dst)
	}
	return binenc.AppendVarint(dst, s.reached)
}

func (s *shards) restore(r *binenc.Reader) {
	for range r.Count(12, 1<<20) {
		s.all = append(s.all, readProgress(r))
	}
	s.reached = r.Varint()
}

func (p *progress) append(dst []byte) []byte {
	dst = binenc.AppendFixed64(dst, p.epoch)
	dst = binenc.AppendUvarint(dst, uint64(len(p.past)))
	for _, e := range p.past {
		dst = binenc.AppendFixed64(dst, e)
	}
	dst = append(binenc.AppendVarint(binenc.AppendUvarint(dst, p.seq), p.closed), binenc.Flags(p.idle))
	dst = binenc.AppendUvarint(dst, uint64(len(p.models)))
	for name, closed := range sorted(p.models) {
		dst = binenc.AppendVarint(binenc.AppendString(dst, name), closed)
	}
	return dst
}

func readProgress(r *binenc.Reader) (p progress) {
	p.epoch = r.Fixed64()
	for range r.Count(8, maxLosses) {
		p.past = append(p.past, r.Fixed64())
	}
	p.seq, p.closed, p.idle = r.Uvarint(), r.Varint(), r.Byte() == 1
	for range r.Count(2, binenc.MaxItems) {
		p.know(r.String(binenc.MaxName), r.Varint())
	}
	return p
}
