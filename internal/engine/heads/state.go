package heads

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/serve"
	"github.com/plumbline/plumbline/trainer/service"
)

// State is what the finetune and heads topics say: for the page, and for the shards, which run the heads.
type State struct {
	log   *slog.Logger
	heads *shadow.Heads // nil: nobody runs them

	mu       sync.Mutex
	queue    *service.Queue
	verdicts map[string]record.Verdict // by head id
	orders   map[string]orderSeen
	seq      int                     // of orders
	unread   map[string]*record.Head // by id: trained heads of which this machine could not read the file
}

// orderSeen is an order with its place among all orders.
type orderSeen struct {
	record.Order
	seq int
}

// New returns a state without requests and heads. It puts running heads into heads, where the shards find them.
func New(heads *shadow.Heads, log *slog.Logger) *State {
	return &State{log: log, heads: heads, queue: service.NewQueue(), verdicts: map[string]record.Verdict{},
		orders: map[string]orderSeen{}, unread: map[string]*record.Head{}}
}

// Request takes a record of the finetune topic.
func (t *State) Request(r *record.Finetune) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.TakeRequest(r, time.Now())
}

// ReadRequest takes a record of the finetune topic as it was read.
func (t *State) ReadRequest(r *pipeline.Record) error {
	f, err := record.Decode[record.Finetune](r.Value)
	if err != nil {
		return err
	}
	return t.Request(f)
}

// ReadRecord takes a record of the heads topic as it was read.
func (t *State) ReadRecord(r *pipeline.Record) error {
	rec, err := record.DecodeHeads(r.Value)
	if err != nil {
		return err
	}
	return t.Record(rec)
}

// Record takes a record of the heads topic: a *record.Head, *record.Job, *record.Verdict or *record.Order; nil is none.
func (t *State) Record(rec any) error {
	h, err := t.take(rec)
	if h == nil || err != nil {
		return err
	}
	return t.trained(h)
}

// take is Record but for the weights. It returns the head that the record is the result of, if any.
func (t *State) take(rec any) (*record.Head, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch r := rec.(type) {
	case nil:
		return nil, nil
	case *record.Verdict:
		return nil, t.verdict(r)
	case *record.Order:
		if r.Kind == record.HeadOrder {
			t.seq++
			t.orders[r.ID] = orderSeen{*r, t.seq}
			return nil, nil
		}
	case *record.Head:
		j := t.queue.Find(r.ID)
		first := j == nil || j.Open() // what comes behind a cancellation counts no more than a second result
		if err := t.queue.Take(r, time.Now()); err != nil || !first {
			return nil, err
		}
		return t.queue.Find(r.ID).Result, nil
	}
	return nil, t.queue.Take(rec, time.Now())
}

// readAgain is how often a head is tried again whose file could not be read: a shared directory may show it later.
const readAgain = 10 * time.Second

// Retry tries again what could not be read, until ctx is done.
func (t *State) Retry(ctx context.Context) {
	tick := time.NewTicker(readAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.again()
		}
	}
}

func (t *State) again() {
	t.mu.Lock()
	unread := t.unread
	t.unread = map[string]*record.Head{}
	t.mu.Unlock()
	for id, h := range unread {
		if err := t.trained(h); err != nil && !unreadable(err) {
			t.log.Warn("a head cannot be used", "id", id, "err", err)
		}
	}
}

// trained has the shards run a head. Its file is read without the lock: while a file server does not answer, the page
// must.
func (t *State) trained(h *record.Head) error {
	if t.heads == nil || h.Outcome != record.OutcomeTrained {
		return nil
	}
	hd, err := service.Weights(*h)
	if err != nil {
		if unreadable(err) {
			t.mu.Lock()
			t.unread[h.ID] = h
			t.mu.Unlock()
		}
		return err
	}
	model, err := serve.New(hd)
	if err != nil {
		return fmt.Errorf("head %s: %w", h.ID, err)
	}
	if h.EffectiveFrom.IsZero() {
		return fmt.Errorf("head %s: effective_from is no time", h.ID)
	}
	t.mu.Lock()
	h.Weights = nil // the copy for the page needs none
	t.mu.Unlock()
	t.log.Info("head", "id", h.ID, "shadow_from", h.EffectiveFrom, "why", h.Why)
	return t.heads.Put(arrowio.ModelKey{Model: h.Model, Version: h.Version}, h.Number, h.EffectiveFrom.UnixNano(),
		model)
}

// unreadable reports whether an error is of a file, which may be read later.
func unreadable(err error) bool {
	file := (*fs.PathError)(nil)
	return errors.As(err, &file)
}

func (t *State) verdict(v *record.Verdict) error {
	if old, ok := t.verdicts[v.ID]; ok && old.DecidedAt.After(v.DecidedAt) {
		return nil // a repeat
	}
	t.verdicts[v.ID] = *v
	if t.heads == nil || v.EffectiveFrom.IsZero() {
		return nil
	}
	t.heads.Stop(arrowio.ModelKey{Model: v.Model, Version: v.Version}, v.Number, v.EffectiveFrom.UnixNano())
	return nil
}

// Result is what training a head came to; nil while nothing has.
func (t *State) Result(id string) *record.Head {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.queue.Find(id)
	if j == nil || j.Result == nil {
		return nil
	}
	h := *j.Result
	return &h
}
