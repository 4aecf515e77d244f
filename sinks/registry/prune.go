package registry

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Prune removes what is beyond Config.Rows and Config.MaxAge of the given models; nil means all. It returns how many entries
// went. What it keeps depends on the entries alone: a database that is filled anew keeps the same. Of each version the calibrator in
// force and the one before it stay however old they are, a pin or canary that has not ended, and what says which heads are served.
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
		err := s.transact(ctx, "history: prune", func(ctx context.Context, tx *sql.Tx) error {
			n, err := s.prune(ctx, tx, m)
			removed += n
			return err
		})
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// dispensable is which entries e may be removed: none of what is in force.
//
// A revision is in force, or the one before, where at most one other revision has newer records.
const dispensable = ` AND NOT (e.revision > 0 AND (SELECT count(DISTINCT n.revision) FROM plumbline_entries n
		WHERE n.model = e.model AND n.version = e.version AND n.revision > 0 AND n.revision <> e.revision AND (n.at, n.seq, n.id) > (e.at, e.seq, e.id)) <= 1)
	AND NOT (e.kind = 'calibrator' AND e.state = 'pinned' AND NOT EXISTS (SELECT 1 FROM plumbline_entries n
		WHERE n.model = e.model AND n.version = e.version AND n.kind = 'calibrator' AND n.state IN ('pinned', 'unpinned') AND (n.at, n.seq, n.id) > (e.at, e.seq, e.id)))
	AND NOT (e.kind = 'calibrator' AND e.state = 'canary' AND NOT EXISTS (SELECT 1 FROM plumbline_entries n
		WHERE n.model = e.model AND n.version = e.version AND n.kind = 'calibrator' AND n.state IN ('canary', 'canary_ended') AND (n.at, n.seq, n.id) > (e.at, e.seq, e.id)))`

func (s *Store) prune(ctx context.Context, tx *sql.Tx, model string) (removed int64, err error) {
	keep, err := s.headsInForce(ctx, tx, model)
	if err != nil {
		return 0, err
	}
	among := ""
	if len(keep) > 0 {
		among = " AND e.id NOT IN (?" + strings.Repeat(", ?", len(keep)-1) + ")"
	}
	remove := func(condition string, args ...any) error {
		res, err := tx.ExecContext(ctx, s.d.bind(`DELETE FROM plumbline_entries WHERE id IN (SELECT e.id FROM plumbline_entries e WHERE e.model = ? AND `+condition+dispensable+among+`)`), slices.Concat([]any{model}, args, keep)...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		removed += n
		return err
	}
	if s.cfg.MaxAge > 0 {
		var newest sql.NullInt64
		// Orders have the wall clock, which may be years from event time.
		if err := tx.QueryRowContext(ctx, s.d.bind(`SELECT max(at) FROM plumbline_entries WHERE model = ? AND kind <> ?`), model, record.DecisionOrder).Scan(&newest); err != nil {
			return 0, err
		}
		if newest.Valid {
			if err := remove("e.at < ?", newest.Int64-int64(s.cfg.MaxAge)); err != nil {
				return 0, err
			}
		}
	}
	if s.cfg.Rows <= 0 {
		return removed, nil
	}
	var p position
	err = tx.QueryRowContext(ctx, s.d.bind(`SELECT at, seq, id FROM plumbline_entries WHERE model = ? ORDER BY at DESC, seq DESC, id DESC LIMIT 1 OFFSET ?`), model, s.cfg.Rows).
		Scan(&p.at, &p.seq, &p.id)
	if errors.Is(err, sql.ErrNoRows) {
		return removed, nil
	}
	if err != nil {
		return removed, err
	}
	return removed, remove("(e.at, e.seq, e.id) <= (?, ?, ?)", p.at, p.seq, p.id)
}

// Models are the models that have entries, sorted as the database sorts. Each costs one look into the index.
func (s *Store) Models(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, read, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for last := ""; ; {
		var next sql.NullString
		if err := read.QueryRowContext(ctx, s.d.bind(`SELECT min(model) FROM plumbline_entries WHERE model > ?`), last).Scan(&next); err != nil {
			return nil, s.fail("history: models", err)
		}
		if !next.Valid {
			return out, nil
		}
		last = next.String
		out = append(out, last)
	}
}
