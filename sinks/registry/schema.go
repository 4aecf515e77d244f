package registry

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations are the statements that take a database from one version of the schema to the next; a database that is new
// gets all of them. They run in both dialects. What is here is never changed: a change is a migration more.
var migrations = [][]string{
	{
		`CREATE TABLE plumbline_entries (id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, model TEXT NOT NULL, version TEXT NOT NULL, slice TEXT NOT NULL,
			at BIGINT NOT NULL, seq BIGINT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL, record TEXT NOT NULL)`,
		`CREATE INDEX plumbline_entries_model ON plumbline_entries (model, at, seq, id)`,
		`CREATE TABLE plumbline_positions (cluster TEXT NOT NULL, topic TEXT NOT NULL, part BIGINT NOT NULL, next BIGINT NOT NULL,
			PRIMARY KEY (cluster, topic, part))`,
	},
}

// migrate brings the schema to the newest version of steps. A database of a later version is refused: another build of
// plumbline writes to it what this one does not know.
func migrate(ctx context.Context, db *sql.DB, d dialect, steps [][]string) error {
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
		for _, s := range steps[i] {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("schema version %d: %w", i+1, err)
			}
		}
		if _, err := tx.ExecContext(ctx, d.bind(`INSERT INTO plumbline_schema (version) VALUES (?)`), i+1); err != nil {
			return err
		}
	}
	return tx.Commit()
}
