package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/record"
)

// step takes a database from one version of the schema to the next: statements, then what only the records can say.
type step struct {
	statements []string
	fill       func(ctx context.Context, tx *sql.Tx, d dialect) error // nil = nothing
}

// migrations are the steps; a database that is new gets all of them. They run in both dialects. What is here is never changed: a
// change is a migration more.
var migrations = []step{
	{statements: []string{
		`CREATE TABLE plumbline_entries (id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, model TEXT NOT NULL, version TEXT NOT NULL, slice TEXT NOT NULL,
			at BIGINT NOT NULL, seq BIGINT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL, record TEXT NOT NULL)`,
		`CREATE INDEX plumbline_entries_model ON plumbline_entries (model, at, seq, id)`,
		`CREATE TABLE plumbline_positions (cluster TEXT NOT NULL, topic TEXT NOT NULL, part BIGINT NOT NULL, next BIGINT NOT NULL,
			PRIMARY KEY (cluster, topic, part))`,
	}},
	{statements: []string{
		`ALTER TABLE plumbline_entries ADD COLUMN revision BIGINT NOT NULL DEFAULT 0`,
		`CREATE INDEX plumbline_entries_revision ON plumbline_entries (model, version, revision)`,
	}, fill: fillRevisions},
	{statements: []string{
		// Entries of heads are few among many, and pruning looks at all of them: the condition is that of Store.heads, word for word.
		`CREATE INDEX plumbline_entries_heads ON plumbline_entries (model, at, seq, id) WHERE ` + ofHeads,
	}},
}

// fillRevisions gives entries of before the column their revision.
func fillRevisions(ctx context.Context, tx *sql.Tx, d dialect) error {
	rows, err := tx.QueryContext(ctx, d.bind(`SELECT id, record FROM plumbline_entries WHERE kind = ? AND state NOT IN ('no_change', 'refused', 'canary', 'canary_ended')`), record.DecisionCalibrator)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	revisions := map[string]int64{}
	for rows.Next() {
		var id, record string
		if err := rows.Scan(&id, &record); err != nil {
			return err
		}
		e := Entry{Record: []byte(record)}
		if err := fillCalibrator(&e); err != nil {
			return fmt.Errorf("entry %s: %w", id, err)
		}
		if e.revision > 0 {
			revisions[id] = e.revision
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for id, revision := range revisions {
		if _, err := tx.ExecContext(ctx, d.bind(`UPDATE plumbline_entries SET revision = ? WHERE id = ?`), revision, id); err != nil {
			return err
		}
	}
	return nil
}

// migrate brings the schema to the newest version of steps. A database of a later version is refused: another build of
// plumbline writes to it what this one does not know.
func migrate(ctx context.Context, db *sql.DB, d dialect, steps []step) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if lock := d.lockSchema(); lock != "" {
		if _, err := tx.ExecContext(ctx, lock); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS plumbline_schema (version BIGINT NOT NULL)`); err != nil {
		return err
	}
	var have sql.NullInt64
	if err := tx.QueryRowContext(ctx, `SELECT max(version) FROM plumbline_schema`).Scan(&have); err != nil {
		return err
	}
	if have.Int64 > int64(len(steps)) {
		return fmt.Errorf("the database has version %d of the schema, this build knows %d: it was filled by a newer plumbline", have.Int64, len(steps))
	}
	if have.Int64 == int64(len(steps)) {
		return nil
	}
	for i := have.Int64; i < int64(len(steps)); i++ {
		for _, s := range steps[i].statements {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("schema version %d: %w", i+1, err)
			}
		}
		if steps[i].fill != nil {
			if err := steps[i].fill(ctx, tx, d); err != nil {
				return fmt.Errorf("schema version %d: %w", i+1, err)
			}
		}
		if _, err := tx.ExecContext(ctx, d.bind(`INSERT INTO plumbline_schema (version) VALUES (?)`), i+1); err != nil {
			return err
		}
	}
	return tx.Commit()
}
