package registry

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/plumbline/plumbline/pipeline/record"
)

// headEntries are the newest entries about one head.
type headEntries struct {
	version                       string
	number                        int
	state, order                  string // of the newest verdict and order
	trainedID, verdictID, orderID string
}

// servable reports whether servers may be told to serve the head: it is pinned, or ready and not rolled back.
func (h *headEntries) servable() bool {
	return h.trainedID != "" && (h.order == record.OrderPin || h.state == record.ShadowReady && h.order != record.OrderRollback)
}

// headsInForce are the ids of the entries that say which heads of a model are served, and which would be next: of each version two at most,
// pinned ones first, then the newest.
func (s *Store) headsInForce(ctx context.Context, tx *sql.Tx, model string) (keep []any, err error) {
	heads, err := s.heads(ctx, tx, model)
	if err != nil {
		return nil, err
	}
	kept := map[string]int{}
	for _, pinned := range []bool{true, false} {
		for _, h := range heads {
			if !h.servable() || (h.order == record.OrderPin) != pinned || kept[h.version] == 2 {
				continue
			}
			kept[h.version]++
			for _, id := range []string{h.trainedID, h.verdictID, h.orderID} {
				if id != "" {
					keep = append(keep, id)
				}
			}
		}
	}
	return keep, nil
}

// ofHeads are the entries that say which heads are served. There is an index of them.
const ofHeads = `kind IN ('head', 'verdict', 'order') AND state <> 'refused'`

const headEntriesOf = `SELECT id, kind, version, record FROM plumbline_entries WHERE model = ? AND ` + ofHeads + ` ORDER BY at, seq, id`

// heads are the heads of a model that have entries, those with the highest numbers first.
func (s *Store) heads(ctx context.Context, tx *sql.Tx, model string) ([]*headEntries, error) {
	rows, err := tx.QueryContext(ctx, s.d.bind(headEntriesOf), model)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	byID := map[string]*headEntries{}
	var all []*headEntries
	for rows.Next() {
		var id, kind, version, body string
		if err := rows.Scan(&id, &kind, &version, &body); err != nil {
			return nil, err
		}
		var r struct {
			ID, Outcome, State, Action string
			Number                     int
		}
		if json.Unmarshal([]byte(body), &r) != nil {
			continue // of another build: it is pruned as any entry is
		}
		h := byID[r.ID]
		if h == nil {
			h = &headEntries{version: version}
			byID[r.ID] = h
			all = append(all, h)
		}
		switch kind {
		case record.DecisionHead:
			if r.Outcome == record.OutcomeTrained {
				h.trainedID, h.number = id, r.Number
			}
		case record.DecisionVerdict:
			h.verdictID, h.state = id, r.State
		default:
			h.orderID, h.order = id, r.Action
		}
	}
	slices.SortStableFunc(all, func(a, b *headEntries) int { return b.number - a.number })
	return all, rows.Err()
}
