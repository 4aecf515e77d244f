package model

import (
	"encoding/json"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Counts of states that began anew.
const (
	CountEpochs = "pane_epochs" // a shard went on with another state than the one known
	CountStale  = "pane_stale"  // messages of a state that another one has taken the place of
	CountUndone = "pane_undone" // messages that a restored backup's tasks sent after it was made
)

// maxEnds bounds the ends that are remembered, the latest: those of a restored backup, which are one for each shard.
const maxEnds = 1 << 14

// maxLosses bounds the losses, and the epochs of a shard, that are remembered. Only orders of people make new ones.
const maxLosses = 64

// losses are the losses of states that the task's statistics may miss rows of.
type losses struct {
	all []record.Loss
	// midway: the task began with an empty state in the middle of the panes topic, so the first message of a shard is
	// not the shard's first.
	midway bool
	// ends are the last message numbers in a restored backup, by shard and epoch: later messages were sent after the
	// backup and are ignored.
	ends []End
}

// End is the last message that counts of a shard's epoch, on the panes partition of the task.
type End struct {
	Shard      int
	Epoch, Seq uint64
}

// undone reports whether a message is of what a restored backup has undone.
func (s *losses) undone(m *pipeline.PaneMessage) bool {
	return slices.ContainsFunc(s.ends, func(e End) bool {
		return e.Shard == m.Shard && e.Epoch == m.Epoch && m.Seq > e.Seq
	})
}

// take takes note of a shard's loss, which every model may miss rows of.
func (s *losses) take(t *Task, l *record.Loss) error {
	t.log.Warn("rows were lost with the state of a task", "task", l.Task, "since", l.Since, "until", l.Until, "by",
		l.By, "why", l.Why)
	s.all = append(s.all[max(0, len(s.all)+1-maxLosses):], *l)
	for name := range sorted(t.models) {
		if err := tellLoss(t, l, name); err != nil {
			return err
		}
	}
	return nil
}

// tellLoss writes a loss into the history of a model.
func tellLoss(t *Task, l *record.Loss, model string) error {
	if l == nil {
		return nil
	}
	of := *l
	of.Model = model
	m, err := pipeline.NewMessage(pipeline.StreamDecisions, model, l.Until.UnixNano(), &of)
	if err != nil {
		return err
	}
	t.emit(nil, m)
	return nil
}

// bound sets the bounds of a loss of the task's own state. They are known only now: which label panes the shards had
// closed before the first punctuation, and with it.
func (s *losses) bound(reached, closed, length int64) {
	for i := range s.all {
		l := &s.all[i]
		if !isModels(*l) || !l.Until.IsZero() || closed == minPane {
			continue
		}
		if l.Since.IsZero() && reached != minPane {
			l.Since = record.At(reached * length)
		}
		l.Until = record.At(closed * length)
	}
}

// own is the loss of the task's own state, which models report when they appear again; nil = the state was never lost.
func (s *losses) own() *record.Loss {
	if i := slices.IndexFunc(s.all, isModels); i >= 0 {
		return &s.all[i]
	}
	return nil
}

func isModels(l record.Loss) bool { return len(l.Task) > 6 && l.Task[:6] == "models" }

// touching is what an interval of event time may miss.
func (s *losses) touching(start, end int64) *record.Lost {
	var out *record.Lost
	for i := range s.all {
		l := &s.all[i]
		if !l.Since.IsZero() && end <= l.Since.UnixNano() || !l.Until.IsZero() && start >= l.Until.UnixNano() {
			continue
		}
		if out == nil {
			out = &record.Lost{Since: l.Since, Until: l.Until}
		}
		if out.Since.After(l.Since) {
			out.Since = l.Since
		}
		if l.Until.After(out.Until) {
			out.Until = l.Until
		}
		if !slices.Contains(out.Tasks, l.Task) {
			out.Tasks = append(out.Tasks, l.Task)
		}
	}
	return out
}

// AppendState appends u8 whether the task began in the middle of the topic, bytes JSON array of losses; where there are
// ends, uvarint how many, each uvarint shard, fixed64 epoch, uvarint number.
func (s *losses) AppendState(dst []byte) ([]byte, error) {
	b, err := json.Marshal(s.all)
	if err != nil {
		return nil, err
	}
	dst = binenc.AppendBytes(append(dst, binenc.Flags(s.midway)), b)
	if len(s.ends) > 0 {
		dst = binenc.AppendUvarint(dst, uint64(len(s.ends)))
	}
	for _, e := range s.ends {
		dst = binenc.AppendFixed64(binenc.AppendUvarint(dst, uint64(e.Shard)), e.Epoch)
		dst = binenc.AppendUvarint(dst, e.Seq)
	}
	return dst, nil
}

// RestoreState implements pipeline.State.
func (s *losses) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	s.midway = r.Byte() == 1
	b := r.Bytes(binenc.MaxItems)
	if s.ends = nil; r.Offset() < len(src) {
		const endBytes = 10
		for range r.Count(endBytes, maxEnds) {
			shard := int(r.Int("shard", 0, binenc.MaxItems))
			s.ends = append(s.ends, End{Shard: shard, Epoch: r.Fixed64(), Seq: r.Uvarint()})
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	return json.Unmarshal(b, &s.all)
}

// Heard is the last message of a shard before an offset of the panes topic; messages up to it are repeats.
type Heard struct {
	Shard, Of  int
	Epoch, Seq uint64
	Closed     int64
}

// Begun is the first checkpoint of a task that begins at an offset of the panes topic with an empty state.
func Begun(next int64, heard []Heard, l *record.Loss) (pipeline.Checkpoint, error) {
	t := &Task{next: next, shards: shards{reached: minPane, losses: losses{all: []record.Loss{*l}, midway: true}}}
	for _, h := range heard {
		t.shards.grow(h.Of)
		t.shards.all[h.Shard] = progress{epoch: h.Epoch, seq: h.Seq, closed: h.Closed}
	}
	return pipeline.EncodeCheckpoint([]pipeline.Section{modelSection(t), lossesSection(t)})
}

// Moved are the changes of a checkpoint that let its task go on at another offset of the panes topic.
func Moved(next int64, l *record.Loss) map[string]pipeline.Edit {
	return map[string]pipeline.Edit{
		"model": func(body []byte) ([]byte, error) {
			r := binenc.NewReader(body)
			r.Varint()
			if err := r.Err(); err != nil {
				return nil, err
			}
			return append(binenc.AppendVarint(nil, next), body[r.Offset():]...), nil
		},
		"losses": pipeline.EditState(func(s *losses) { s.all = append(s.all, *l) }),
	}
}

// Undoing are the changes of a checkpoint with which no message beyond these ends counts.
func Undoing(ends []End) map[string]pipeline.Edit {
	return map[string]pipeline.Edit{"losses": pipeline.EditState(func(s *losses) {
		s.ends = append(s.ends, ends...)
		s.ends = s.ends[max(0, len(s.ends)-maxEnds):]
	})}
}

func lossesSection(t *Task) pipeline.Section {
	return pipeline.Section{Name: "losses", Version: 1, State: &t.shards.losses}
}
