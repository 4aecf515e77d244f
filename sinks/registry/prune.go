package registry

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Prune removes what is beyond Config.Rows and Config.MaxAge of the given models; nil means all. It returns how many
// entries went. What it keeps depends on the entries alone: a database that is filled anew keeps the same. Of each
// version the calibrator in force and the one before it stay however old they are, a pin or canary that has not ended,
// and what says which heads are served.
func (s *Store) Prune(ctx context.Context, models []string) (removed int64, err error) {
	if s.cfg.Rows <= 0 && s.cfg.MaxAge <= 0 {
		return 0, nil
	}
	if models == nil {
		if models, err = s.Models(ctx); err != nil {
			return 0, err
		}
	}
	for _, m := range models {
		var n int64
		err := s.update(ctx, "prune", func(w writer) error {
			n = 0
			before, err := s.bound(w, m)
			if err != nil || before == (position{}) {
				return err
			}
			keep, err := inForce(w, m)
			if err != nil {
				return err
			}
			n, err = w.remove(m, before, keep)
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

// bound is the position that a model's entries are kept from; the zero value = all.
func (s *Store) bound(r reader, model string) (before position, err error) {
	one := func(f filter) (p position, ok bool, err error) {
		f.Model, f.limit = model, 1
		err = r.entries(&f, func(e *Entry) bool {
			p, ok = e.rank(), true
			return false
		})
		return p, ok, err
	}
	if s.cfg.MaxAge > 0 {
		// Orders have the wall clock, which may be years from event time.
		newest, ok, err := one(filter{Search: Search{Kinds: []string{record.DecisionCalibrator, record.DecisionAlert,
			record.DecisionRequest, record.DecisionHead, record.DecisionVerdict}}})
		if err != nil {
			return before, err
		}
		if ok {
			before = position{at: newest.at - int64(s.cfg.MaxAge), seq: math.MinInt64}
		}
	}
	if s.cfg.Rows > 0 {
		last, ok, err := one(filter{skip: s.cfg.Rows - 1})
		if err != nil {
			return before, err
		}
		if ok && (before == (position{}) || last.compare(before) > 0) {
			before = last
		}
	}
	return before, nil
}

// inForce are the ids of the entries that say what is in force of a model, and what was before it.
func inForce(r reader, model string) (map[string]bool, error) {
	keep := map[string]bool{}
	versions, heads := map[string]*versionInForce{}, map[string]*headInForce{}
	err := r.entries(&filter{Search: Search{Model: model}, decisive: true}, func(e *Entry) bool {
		if e.Kind != record.DecisionCalibrator {
			if heads[e.head] == nil {
				heads[e.head] = &headInForce{version: e.Version}
			}
			heads[e.head].take(e)
			return true
		}
		if versions[e.Version] == nil {
			versions[e.Version] = &versionInForce{}
		}
		if versions[e.Version].needs(e) {
			keep[e.ID] = true
		}
		return true
	})
	keepHeads(heads, keep)
	return keep, err
}

// versionInForce is what the entries of a version have said so far, newest first.
type versionInForce struct {
	revisions   []int64 // the newest three
	pin, canary bool    // whether there is one, or its end
}

// needs reports whether e says what is in force. A revision is in force, or the one before, where at most one other
// revision has newer records.
func (v *versionInForce) needs(e *Entry) (needed bool) {
	if e.revision > 0 {
		others := len(v.revisions)
		if slices.Contains(v.revisions, e.revision) {
			others--
		} else if others < 3 {
			v.revisions = append(v.revisions, e.revision)
		}
		needed = others <= 1
	}
	switch e.State {
	case record.DecidedPinned, record.DecidedUnpinned:
		needed = needed || !v.pin && e.State == record.DecidedPinned
		v.pin = true
	case record.DecidedCanary, record.DecidedCanaryEnded:
		needed = needed || !v.canary && e.State == record.DecidedCanary
		v.canary = true
	}
	return needed
}

// headInForce are the newest entries about one head.
type headInForce struct {
	version                       string
	number                        int64
	state, order                  string // of the newest verdict and order
	trainedID, verdictID, orderID string
}

// take takes an entry; the first of its kind is the newest.
func (h *headInForce) take(e *Entry) {
	switch {
	case e.Kind == record.DecisionHead:
		if e.State == record.OutcomeTrained && h.trainedID == "" {
			h.trainedID, h.number = e.ID, e.revision
		}
	case e.Kind == record.DecisionVerdict:
		if h.verdictID == "" {
			h.verdictID, h.state = e.ID, e.State
		}
	case h.orderID == "":
		h.orderID, h.order = e.ID, e.State
	}
}

// servable reports whether servers may be directed to the head: it is pinned, or ready and not rolled back.
func (h *headInForce) servable() bool {
	return h.trainedID != "" && (h.order == record.OrderPin || h.state == record.ShadowReady &&
		h.order != record.OrderRollback)
}

// keepHeads adds the entries that say which heads are served, and which would be next: of each version two at most,
// pinned ones first, then the newest.
func keepHeads(heads map[string]*headInForce, keep map[string]bool) {
	var servable []*headInForce
	for _, h := range heads {
		if h.servable() {
			servable = append(servable, h)
		}
	}
	pinned := func(h *headInForce) int {
		if h.order == record.OrderPin {
			return 1
		}
		return 0
	}
	slices.SortFunc(servable, func(a, b *headInForce) int {
		return cmp.Or(cmp.Compare(pinned(b), pinned(a)), cmp.Compare(b.number, a.number),
			cmp.Compare(a.trainedID, b.trainedID))
	})
	kept := map[string]int{}
	for _, h := range servable {
		if kept[h.version]++; kept[h.version] > 2 {
			continue
		}
		for _, id := range []string{h.trainedID, h.verdictID, h.orderID} {
			if id != "" {
				keep[id] = true
			}
		}
	}
}
