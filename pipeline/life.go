package pipeline

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Life is from when to when a task's state was never lost. What counts what the task has written counts anew in
// another life.
type Life struct {
	// Epoch names the life; 0 is that of a replay, whose messages nobody else reads.
	Epoch uint64
	// Loss is what the life before took along, where a person has ordered this one; nil = it is the first.
	Loss *record.Loss

	known bool // Loss has its end, the shard has reached an event time
	told  bool // the readers of the panes topic have been told
}

// NewEpoch draws an epoch.
func NewEpoch() uint64 { return rand.Uint64() | 1 }

// Life is the shard's.
func (s *Shard) Life() *Life { return s.Outbox.life }

// Begin makes an empty life one that a person has ordered after a loss, or, without one, the first.
func (l *Life) Begin(epoch uint64, loss *record.Loss) { *l = Life{Epoch: epoch, Loss: loss} }

// Move notes a loss of records that were never read; the state is what it was.
func (l *Life) Move(loss *record.Loss) { l.Loss, l.known, l.told = loss, false, false }

// Section is the life's part of a checkpoint.
func (l *Life) Section() Section { return Section{Name: "life", Version: 1, State: l} }

// reached sets the end of the loss to the newest event time when the shard first knows one: what was lost had come
// before.
func (l *Life) reached(wm Time, lateness int64) {
	if l.Loss == nil || l.known {
		return
	}
	loss := *l.Loss
	if wm < EndTime-lateness {
		loss.Until = record.At(wm + lateness)
	}
	l.Loss, l.known = &loss, true
}

// tell returns the loss once its bounds are known, and once only.
func (l *Life) tell() *record.Loss {
	if !l.known || l.told {
		return nil
	}
	l.told = true
	return l.Loss
}

// AppendState implements State.
func (l *Life) AppendState(dst []byte) ([]byte, error) {
	dst = append(binenc.AppendFixed64(dst, l.Epoch), binenc.Flags(l.Loss != nil, l.known, l.told))
	if l.Loss != nil {
		dst = appendLoss(dst, l.Loss)
	}
	return dst, nil
}

// RestoreState implements State.
func (l *Life) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	l.Epoch = r.Fixed64()
	flags := r.Byte()
	l.known, l.told = flags&2 != 0, flags&4 != 0
	if flags&1 != 0 {
		var err error
		if l.Loss, err = readLoss(&r); err != nil {
			return err
		}
	}
	return r.Close()
}

const maxLoss = 1 << 20

// appendLoss writes a loss as its record's JSON: it is rare, and what it says may grow.
func appendLoss(dst []byte, l *record.Loss) []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("pipeline: loss: %v", err)) // strings, numbers and times
	}
	return binenc.AppendBytes(dst, b)
}

func readLoss(r *binenc.Reader) (*record.Loss, error) {
	b := r.Bytes(maxLoss)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return record.Decode[record.Loss](b)
}
