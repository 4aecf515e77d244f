package refit

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// CountOrders counts orders of people that were carried out, CountBadOrders those that were refused.
const (
	CountOrders    = "orders"
	CountBadOrders = "orders_rejected"
)

// keptOrders is the number of orders that a version remembers in order to recognise repeats.
const keptOrders = 64

// NoTime is the time of an order that came before any event time was known.
const NoTime = math.MinInt64

// pin keeps the calibrator in force until a person changes that.
type pin struct {
	by, why string
	at      int64
}

// Orders are the orders of a model that wait for their place, in the order of the log. The zero value is empty.
type Orders struct{ waiting []order }

// order is an order with its place: it takes effect before a label pane.
type order struct {
	pane int64
	c    *pipeline.Order
}

// Add queues an order that takes effect before a label pane.
func (q *Orders) Add(pane int64, c *pipeline.Order) { q.waiting = append(q.waiting, order{pane, c}) }

// Empty reports whether no order waits.
func (q *Orders) Empty() bool { return len(q.waiting) == 0 }

// Next removes and returns the first order whose place is at or before a label pane, and its place. It returns nil if
// there is none.
func (q *Orders) Next(pane int64) (c *pipeline.Order, place int64) {
	if len(q.waiting) == 0 || q.waiting[0].pane > pane {
		return nil, 0
	}
	o := q.waiting[0]
	q.waiting = q.waiting[1:]
	return o.c, o.pane
}

// Append appends the queue to a checkpoint.
func (q *Orders) Append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(q.waiting)))
	for _, o := range q.waiting {
		dst = binenc.AppendBytes(binenc.AppendVarint(dst, o.pane), pipeline.AppendOrder(nil, o.c))
	}
	return dst
}

// Restore reads what Append wrote.
func (q *Orders) Restore(in *binenc.Reader) error {
	for range in.Count(2, binenc.MaxItems) {
		pane, b := in.Varint(), in.Bytes(binenc.MaxBytes)
		if in.Err() != nil {
			break
		}
		c, err := pipeline.DecodeOrder(b)
		if err != nil {
			return err
		}
		q.Add(pane, c)
	}
	return in.Err()
}

// Refuse counts an order that cannot be carried out, and publishes a record of that, which its author finds in the log
// and in the history. The record belongs to no state and no ledger, since the model or version may not exist.
func (g *Stage) Refuse(c *pipeline.Order, now int64, why string) error {
	g.env.Counts.Add(CountBadOrders, 1)
	g.env.Log.Error("order cannot be obeyed",
		"action", c.Action, "model", c.Model, "version", c.Version, "by", c.By, "why", why)
	if now == NoTime {
		return nil
	}
	at := record.At(now)
	m, err := pipeline.NewMessage(pipeline.StreamDecisions, c.Model+"/"+c.Version, now, &record.Calibrator{
		Schema:        1,
		Model:         c.Model,
		Version:       c.Version,
		Reason:        reasonManual,
		State:         record.DecidedRefused,
		Outcome:       "refused: " + c.Action + " by " + c.By + ": " + why,
		DecidedAt:     at,
		EffectiveFrom: at,
		By:            c.By,
		Why:           c.Why,
		Order:         hex.EncodeToString(c.ID[:]),
		Build:         g.deps.Build,
	})
	if err != nil {
		return fmt.Errorf("record of a refused order: %w", err)
	}
	g.env.Emit(nil, m)
	return nil
}

// Accept reports whether an order is new, and remembers it.
func (s *State) Accept(c *pipeline.Order) bool {
	if slices.Contains(s.orders, c.ID) {
		return false
	}
	s.stage.env.Counts.Add(CountOrders, 1)
	s.orders = append(s.orders, c.ID)
	s.orders = s.orders[max(0, len(s.orders)-keptOrders):]
	return true
}

// Obey carries out an order for the version. now is the order's place in event time. A repeat does nothing.
func (s *State) Obey(c *pipeline.Order, now int64) error {
	if slices.Contains(s.orders, c.ID) {
		return nil
	}
	var b *baseline // the calibrator to put into force
	switch c.Action {
	case pipeline.ActionPublish, pipeline.ActionPin, pipeline.ActionRollback:
		var err error
		if b, err = s.wanted(c); err != nil {
			return s.stage.Refuse(c, now, err.Error())
		}
	}
	s.Accept(c)
	s.count(nil, now)
	switch c.Action {
	case pipeline.ActionPin:
		s.pin = &pin{c.By, c.Why, now}
	case pipeline.ActionUnpin:
		s.pin = nil
	}
	if s.run != nil && c.Action != pipeline.ActionUnpin {
		if err := s.end(c.Action+" by "+c.By, now); err != nil {
			return err
		}
	}
	d := record.Calibrator{Reason: reasonManual, State: decided[c.Action], By: c.By, Why: c.Why,
		Order: hex.EncodeToString(c.ID[:])}
	if b == nil {
		d.Outcome = c.Action + " by " + c.By
		return s.restate(&d, now)
	}
	d.Outcome, d.Method = "published: "+c.Action+" by "+c.By, b.cal.Method()
	if c.Action != pipeline.ActionPublish {
		d.Restores = &b.revision
	}
	return s.putInForce(&d, b.cal, b.encoded, now)
}

// decided is the state of the record by which an order is obeyed.
var decided = map[string]string{
	pipeline.ActionPin:      record.DecidedPinned,
	pipeline.ActionUnpin:    record.DecidedUnpinned,
	pipeline.ActionPublish:  record.DecidedPublished,
	pipeline.ActionRollback: record.DecidedRolledBack,
}

// wanted returns the calibrator that an order puts into force; nil if the one in force stays.
func (p *publisher) wanted(c *pipeline.Order) (*baseline, error) {
	v := p.version
	if len(c.Calibrator) > 0 {
		cal, err := decodeFor(c.Calibrator, v.K)
		return &baseline{revision: c.Revision, cal: cal, encoded: c.Calibrator}, err
	}
	if c.Action == pipeline.ActionPin && (c.Revision == 0 || c.Revision == v.InForceRevision()) {
		return nil, nil
	}
	if c.Revision > 0 {
		for _, f := range v.Calibrators {
			if f.Revision == c.Revision && f.Share == 0 {
				return &baseline{revision: f.Revision, cal: f.Cal, encoded: f.Encoded}, nil
			}
		}
		return nil, fmt.Errorf("revision %d is not at hand: send its calibrator with the order", c.Revision)
	}
	if p.monitor == nil {
		return nil, fmt.Errorf("nothing was published that could be rolled back")
	}
	return p.monitor.baselines[0], nil
}

// restate publishes the start or the end of a pin. It publishes the calibrator in force again, so that its last record
// in the compacted topic says who keeps it.
func (p *publisher) restate(d *record.Calibrator, now int64) error {
	f := p.version.Newest()
	if f == nil {
		return p.emit(d, pipeline.StreamDecisions, now)
	}
	d.Published, d.Stage, d.Calibrator, d.Method = true, record.StageFull, json.RawMessage(f.Encoded), f.Cal.Method()
	d.EffectiveFrom = record.At(f.From)
	return p.emit(d, pipeline.StreamCalibrators, now)
}
