package registry

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lib/pq"

	"github.com/plumbline/plumbline/pipeline/record"
)

// querier is an *sql.DB or an *sql.Tx.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// sqlTx is a transaction on a server, or, to read, a connection.
type sqlTx struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the transaction
	db     querier
	writes bool
}

func (t *sqlTx) positionOf(p Place) (next int64, err error) {
	statement := `SELECT next FROM plumbline_positions WHERE cluster = $1 AND topic = $2 AND part = $3`
	if t.writes {
		_, err := t.db.ExecContext(t.ctx, `INSERT INTO plumbline_positions (cluster, topic, part, next)
			VALUES ($1, $2, $3, 0) ON CONFLICT DO NOTHING`, p.Cluster, p.Topic, p.Partition)
		if err != nil {
			return 0, err
		}
		statement += ` FOR UPDATE`
	}
	err = t.db.QueryRowContext(t.ctx, statement, p.Cluster, p.Topic, p.Partition).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return next, err
}

func (t *sqlTx) move(p Place, next int64) error {
	_, err := t.db.ExecContext(t.ctx, `UPDATE plumbline_positions SET next = $4
		WHERE cluster = $1 AND topic = $2 AND part = $3`, p.Cluster, p.Topic, p.Partition, next)
	return err
}

// models costs one look into the index for each.
func (t *sqlTx) models() (out []string, err error) {
	for last := ""; ; {
		var next sql.NullString
		if err := t.db.QueryRowContext(t.ctx, `SELECT min(model) FROM plumbline_entries WHERE model > $1`,
			last).Scan(&next); err != nil {
			return nil, err
		}
		if !next.Valid {
			return out, nil
		}
		last = next.String
		out = append(out, last)
	}
}

func (t *sqlTx) entries(f *filter, yield func(*Entry) bool) error {
	statement, args := f.statement()
	rows, err := t.db.QueryContext(t.ctx, statement, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		e := Entry{Model: f.Model}
		var at int64
		var body string
		err := rows.Scan(&e.ID, &e.Kind, &e.Version, &e.Slice, &at, &e.seq, &e.State, &e.Summary, &e.By, &e.Why,
			&e.head, &e.revision, &body)
		if err != nil {
			return err
		}
		e.At = record.At(at)
		if body != "" {
			e.Record = []byte(body)
		}
		if !yield(&e) {
			return nil
		}
	}
	return rows.Err()
}

// statement is the query of a filter, with its arguments.
func (f *filter) statement() (string, []any) {
	body := `''`
	if f.Records {
		// Whoever writes to the database must not take this process's memory.
		body = `CASE WHEN octet_length(record) <= ` + strconv.Itoa(maxRecord) + ` THEN record ELSE '' END`
	}
	text := `SELECT id, kind, version, slice, at, seq, state, summary, who, why, head, revision, ` + body +
		` FROM plumbline_entries WHERE model = $1`
	args := []any{f.Model}
	and := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		text += ` AND ` + condition
	}
	if f.Version != "" {
		and(`version = ?`, f.Version)
	}
	if len(f.Kinds) > 0 {
		and(`kind = ANY(?)`, pq.Array(f.Kinds))
	}
	if f.Since != nil {
		and(`at >= ?`, *f.Since)
	}
	if f.Until != nil {
		and(`at < ?`, *f.Until)
	}
	if f.before != nil {
		and(`(at, seq, id) < (?, ?, ?)`, f.before.at, f.before.seq, f.before.id)
	}
	if f.decisive {
		and(isDecisive)
	}
	if f.revision != 0 {
		and(`kind = ? AND revision = ?`, record.DecisionCalibrator, f.revision)
	}
	text += ` ORDER BY at DESC, seq DESC, id DESC`
	if f.limit > 0 {
		text += ` LIMIT ` + strconv.Itoa(f.limit)
	}
	if f.skip > 0 {
		text += ` OFFSET ` + strconv.FormatInt(f.skip, 10)
	}
	return text, args
}

func (t *sqlTx) add(es []Entry) (added int, err error) {
	if len(es) == 0 {
		return 0, nil
	}
	insert, err := t.db.PrepareContext(t.ctx, `INSERT INTO plumbline_entries
		(id, kind, model, version, slice, at, seq, state, summary, who, why, head, revision, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (id) DO NOTHING`)
	if err != nil {
		return 0, err
	}
	defer func() { _ = insert.Close() }()
	for i := range es {
		e := &es[i]
		res, err := insert.ExecContext(t.ctx, e.ID, e.Kind, e.Model, e.Version, e.Slice, e.At.UnixNano(), e.seq,
			e.State, e.Summary, e.By, e.Why, e.head, e.revision, string(e.Record))
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		added += int(n)
		if n == 0 && e.seq > 0 {
			_, err := t.db.ExecContext(t.ctx, `UPDATE plumbline_entries SET seq = $1
				WHERE id = $2 AND (seq = 0 OR seq > $1)`, e.seq, e.ID)
			if err != nil {
				return 0, err
			}
		}
	}
	return added, nil
}

func (t *sqlTx) remove(model string, before position, keep map[string]bool) (removed int64, err error) {
	// No array of ids is NULL, and "<> ALL (NULL)" holds for none: hence the empty one.
	kept := slices.AppendSeq([]string{}, maps.Keys(keep))
	res, err := t.db.ExecContext(t.ctx, `DELETE FROM plumbline_entries
		WHERE model = $1 AND (at, seq, id) < ($2, $3, $4) AND id <> ALL($5)`,
		model, before.at, before.seq, before.id, pq.Array(kept))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
