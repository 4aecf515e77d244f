package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

// schemaVersion is the version of the tables.
const schemaVersion = 1

// schema makes the tables. The condition of the partial index is isDecisive, word for word.
var schema = []string{
	`CREATE TABLE plumbline_entries (
		id       TEXT NOT NULL PRIMARY KEY,
		kind     TEXT NOT NULL,
		model    TEXT NOT NULL,
		version  TEXT NOT NULL,
		slice    TEXT NOT NULL,
		at       BIGINT NOT NULL,
		seq      BIGINT NOT NULL,
		state    TEXT NOT NULL,
		summary  TEXT NOT NULL,
		who      TEXT NOT NULL,
		why      TEXT NOT NULL,
		head     TEXT NOT NULL,
		revision BIGINT NOT NULL,
		record   TEXT NOT NULL)`,
	`CREATE INDEX plumbline_entries_model ON plumbline_entries (model, at, seq, id)`,
	`CREATE INDEX plumbline_entries_decisive ON plumbline_entries (model, at, seq, id) WHERE ` + isDecisive,
	`CREATE TABLE plumbline_positions (
		cluster TEXT NOT NULL,
		topic   TEXT NOT NULL,
		part    BIGINT NOT NULL,
		next    BIGINT NOT NULL,
		PRIMARY KEY (cluster, topic, part))`,
}

// isDecisive is Entry.decisive.
const isDecisive = `(kind = 'calibrator' AND (revision > 0 OR state IN ('pinned', 'unpinned', 'canary', 'canary_ended'))
	OR kind IN ('head', 'verdict', 'order') AND state <> 'refused')`

// schemaLock is the number of an advisory lock that no other program is likely to use.
const schemaLock = 0x706c756d626c696e

// postgres is a database on a server, which all processes of a group may share.
type postgres struct {
	db     *sql.DB
	hide   *strings.Replacer // of secrets in texts of errors
	mu     sync.Mutex
	ready  bool // the tables are there
	closed bool
}

func newPostgres(c *Options) (*postgres, error) {
	dsn := c.DSN
	if !strings.Contains(dsn, "ssl") && os.Getenv("PGSSLMODE") == "" {
		// What PostgreSQL's own programs do; the driver's default is require.
		dsn = withMode(dsn, "prefer")
	}
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, errors.New("history: the address of the database cannot be read: " +
			"it must be postgres://user@host/database?sslmode=verify-full or such words as host=… user=… dbname=…")
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > c.Timeout {
		config.ConnectTimeout = c.Timeout
	}
	if config.ApplicationName == "" {
		config.ApplicationName = "plumbline"
	}
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, errors.New("history: the address of the database cannot be used")
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return &postgres{db: db, hide: hide(c.DSN, config.Password)}, nil
}

// withMode adds sslmode to an address.
func withMode(dsn, mode string) string {
	switch {
	case !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://"):
		return dsn + " sslmode=" + mode
	case strings.Contains(dsn, "?"):
		return dsn + "&sslmode=" + mode
	}
	return dsn + "?sslmode=" + mode
}

// hide replaces secrets in texts.
func hide(secrets ...string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, "…")
		}
	}
	return strings.NewReplacer(pairs...)
}

// hidden is an error without secrets in its text. errors.Is knows what it wraps, which is not shown.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string        { return h.text }
func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }

func (d *postgres) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return d.db.Close()
}

// open has the tables made where they are not known to be there.
func (d *postgres) open(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	if d.ready {
		return nil
	}
	if err := makeSchema(ctx, d.db); err != nil {
		return fmt.Errorf("schema of the database: %w", err)
	}
	d.ready = true
	return nil
}

// done is err without secrets. A database that failed may have been made anew: its tables are looked at again.
func (d *postgres) done(err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrMoved) {
		d.mu.Lock()
		d.ready = false
		d.mu.Unlock()
	}
	return &hidden{d.hide.Replace(err.Error()), err}
}

func (d *postgres) view(ctx context.Context, f func(reader) error) error {
	if err := d.open(ctx); err != nil {
		return d.done(err)
	}
	return d.done(f(&sqlTx{ctx: ctx, db: d.db}))
}

func (d *postgres) update(ctx context.Context, f func(writer) error) error {
	if err := d.open(ctx); err != nil {
		return d.done(err)
	}
	return d.done(transact(ctx, d.db, func(tx *sql.Tx) error { return f(&sqlTx{ctx: ctx, db: tx, writes: true}) }))
}

func transact(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// makeSchema makes the tables where there are none. Tables of another version are refused: another build of plumbline
// uses them.
func makeSchema(ctx context.Context, db *sql.DB) error {
	return transact(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(`+strconv.Itoa(schemaLock)+`)`); err != nil {
			return err
		}
		const table = `CREATE TABLE IF NOT EXISTS plumbline_schema (version BIGINT NOT NULL)`
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return err
		}
		var have sql.NullInt64
		if err := tx.QueryRowContext(ctx, `SELECT max(version) FROM plumbline_schema`).Scan(&have); err != nil {
			return err
		}
		if have.Valid {
			if have.Int64 != schemaVersion {
				return fmt.Errorf("the database has version %d of the schema, this build knows %d", have.Int64,
					schemaVersion)
			}
			return nil
		}
		for _, s := range schema {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO plumbline_schema (version) VALUES ($1)`, schemaVersion)
		return err
	})
}
