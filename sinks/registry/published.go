package registry

import (
	"context"
	"database/sql"
	"errors"
)

// Published returns the newest record that put a revision of a model version in force, or wrote it again with a pin: an
// record.Calibrator with the calibrator in it. ok is false where the database has none.
func (s *Store) Published(ctx context.Context, model, version string, revision int) (record []byte, ok bool, err error) {
	var text string
	err = s.ask(ctx, func(ctx context.Context, read *sql.DB) error {
		return read.QueryRowContext(ctx, s.d.bind(`SELECT record FROM plumbline_entries WHERE model = ? AND version = ? AND revision = ? AND revision > 0 ORDER BY at DESC, seq DESC, id DESC LIMIT 1`),
			short(clean(model)), clean(version), revision).Scan(&text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return []byte(text), err == nil, err
}

// Revisions are those of a model version that Published has, ascending.
func (s *Store) Revisions(ctx context.Context, model, version string) ([]int, error) {
	return list[int](ctx, s, `SELECT DISTINCT revision FROM plumbline_entries WHERE model = ? AND version = ? AND revision > 0 ORDER BY revision`, short(clean(model)), clean(version))
}

// Versions are the versions of a model that have entries about calibrators, sorted as the database sorts.
func (s *Store) Versions(ctx context.Context, model string) ([]string, error) {
	return list[string](ctx, s, `SELECT DISTINCT version FROM plumbline_entries WHERE model = ? AND kind = 'calibrator' AND state <> 'refused' ORDER BY version`, short(clean(model)))
}

// list reads a column.
func list[T any](ctx context.Context, s *Store, statement string, args ...any) (out []T, err error) {
	err = s.ask(ctx, func(ctx context.Context, read *sql.DB) error {
		out = nil
		rows, err := read.QueryContext(ctx, s.d.bind(statement), args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var x T
			if err := rows.Scan(&x); err != nil {
				return err
			}
			out = append(out, x)
		}
		return rows.Err()
	})
	return out, err
}

// ask reads in a bounded time.
func (s *Store) ask(ctx context.Context, f func(ctx context.Context, read *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, read, err := s.open(ctx)
	if err != nil {
		return err
	}
	if err := f(ctx, read); err != nil {
		return s.fail("history: read", err)
	}
	return nil
}
