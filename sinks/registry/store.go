package registry

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config says which database, and how much it keeps.
type Config struct {
	Store string // SQLite or Postgres
	Path  string // of SQLite's file
	DSN   string // of PostgreSQL; never shown
	// Rows is how many entries of a model are kept, MaxAge how much older in event time than its newest; 0 = no bound.
	Rows   int64
	MaxAge time.Duration
	// Timeout bounds a transaction and a query by the clock; 0 = 10 s.
	Timeout time.Duration
}

// Store is the database. Safe for concurrent use.
type Store struct {
	cfg    Config
	d      dialect
	hide   *strings.Replacer // nil: there is nothing to hide
	mu     sync.Mutex
	write  *sql.DB // nil: not open
	read   *sql.DB
	steps  []step
	ready  bool // the schema is there
	closed bool
}

// Place is a partition of a topic.
type Place struct {
	Cluster   string // the brokers' id of it
	Topic     string
	Partition int
}

// ErrMoved says that the database is not where the writer left it: it was emptied, or made anew. The writer must ask for the
// position again, and begin there.
var ErrMoved = errors.New("the database has another position")

// Open returns a store. It connects to nothing yet: a database that does not answer is an error of whoever asks it something.
func Open(cfg Config) (*Store, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	s := &Store{cfg: cfg, steps: migrations}
	var err error
	switch cfg.Store {
	case SQLite:
		s.d, err = newSQLite(&cfg)
	case Postgres:
		var p *postgres
		if p, err = newPostgres(&cfg); err == nil {
			s.d, s.hide = p, hide(cfg.DSN, p.config.Password)
		}
	default:
		err = fmt.Errorf("history.store %q: must be %s or %s", cfg.Store, SQLite, Postgres)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
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

// fail is err without secrets. What it wraps can still be told by errors.Is, and is not shown.
func (s *Store) fail(what string, err error) error {
	text := err.Error()
	if s.hide != nil {
		text = s.hide.Replace(text)
	}
	return &hidden{what + ": " + text, err}
}

// hidden is an error whose text was cleaned.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string        { return h.text }
func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }

// Close closes the database. A store that was closed answers with errors.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.shut()
}

func (s *Store) shut() error {
	var errs []error
	if s.read != nil && s.read != s.write {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil { // last: who writes takes the log of an SQLite file away
		errs = append(errs, s.write.Close())
	}
	s.write, s.read, s.ready = nil, nil, false
	return errors.Join(errs...)
}

// open returns the pools, with the schema there.
func (s *Store) open(ctx context.Context) (write, read *sql.DB, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errors.New("history: the database is closed")
	}
	if s.write != nil && s.d.gone() {
		_ = s.shut()
	}
	if s.write == nil {
		if s.write, s.read, err = s.d.open(); err != nil {
			return nil, nil, s.fail("history: open the database", err)
		}
	}
	if !s.ready {
		if err := migrate(ctx, s.write, s.d, s.steps); err != nil {
			return nil, nil, s.fail("history: schema of the database", err)
		}
		s.ready = true
	}
	return s.write, s.read, nil
}

// doubt has the schema looked at again: a database that failed may have been made anew.
func (s *Store) doubt() {
	s.mu.Lock()
	s.ready = false
	s.mu.Unlock()
}

// Position is the first offset that is not in the database yet.
func (s *Store) Position(ctx context.Context, p Place) (next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, read, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	err = read.QueryRowContext(ctx, s.d.bind(`SELECT next FROM plumbline_positions WHERE cluster = ? AND topic = ? AND part = ?`), p.Cluster, p.Topic, p.Partition).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		s.doubt()
		return 0, s.fail("history: position", err)
	}
	return next, nil
}

// Rewind has a place filled from its log's start again, where its position is still the given one: the offset is no longer in
// the log.
func (s *Store) Rewind(ctx context.Context, p Place, from int64) error {
	return s.transact(ctx, "history: rewind", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.d.bind(`UPDATE plumbline_positions SET next = 0 WHERE cluster = ? AND topic = ? AND part = ? AND next = ?`), p.Cluster, p.Topic, p.Partition, from)
		return err
	})
}

// transact runs f in a transaction of a bounded time.
func (s *Store) transact(ctx context.Context, what string, f func(ctx context.Context, tx *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	db, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		if err = f(ctx, tx); err == nil {
			err = tx.Commit()
		}
	}
	if err != nil && !errors.Is(err, ErrMoved) {
		s.doubt()
		return s.fail(what, err)
	}
	return err
}

// Put writes the entries of the records of a place from offset from up to offset upTo, and that they are in. Who else has
// written them changes nothing. added is how many were not there.
func (s *Store) Put(ctx context.Context, p Place, from, upTo int64, entries []Entry) (added int, err error) {
	// In one order, so that processes that write the same never wait for each other in a circle.
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	err = s.transact(ctx, "history: write", func(ctx context.Context, tx *sql.Tx) error {
		added = 0
		next, err := s.lockPosition(ctx, tx, p)
		if err != nil || next >= upTo {
			return err
		}
		if next < from {
			return fmt.Errorf("%w: %s partition %d is at %d, not %d", ErrMoved, p.Topic, p.Partition, next, from)
		}
		if added, err = s.insert(ctx, tx, entries); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.d.bind(`UPDATE plumbline_positions SET next = ? WHERE cluster = ? AND topic = ? AND part = ?`), upTo, p.Cluster, p.Topic, p.Partition)
		return err
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// lockPosition returns the position of a place, which nobody else changes until the transaction ends.
func (s *Store) lockPosition(ctx context.Context, tx *sql.Tx, p Place) (next int64, err error) {
	if _, err := tx.ExecContext(ctx, s.d.bind(`INSERT INTO plumbline_positions (cluster, topic, part, next) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING`), p.Cluster, p.Topic, p.Partition); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, s.d.bind(`SELECT next FROM plumbline_positions WHERE cluster = ? AND topic = ? AND part = ?`)+s.d.forUpdate(), p.Cluster, p.Topic, p.Partition).Scan(&next)
	return next, err
}

// insert adds entries. One that is there already gets its place on the decisions topic, the first where it was written twice:
// so the order of entries does not depend on which topic was read first.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, entries []Entry) (added int, err error) {
	if len(entries) == 0 {
		return 0, nil
	}
	st, err := tx.PrepareContext(ctx, s.d.bind(`INSERT INTO plumbline_entries (id, kind, model, version, slice, at, seq, state, summary, who, why, record, revision)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`))
	if err != nil {
		return 0, err
	}
	defer func() { _ = st.Close() }()
	place, err := tx.PrepareContext(ctx, s.d.bind(`UPDATE plumbline_entries SET seq = ? WHERE id = ? AND (seq = 0 OR seq > ?)`))
	if err != nil {
		return 0, err
	}
	defer func() { _ = place.Close() }()
	for i := range entries {
		e := &entries[i]
		res, err := st.ExecContext(ctx, e.ID, e.Kind, e.Model, e.Version, e.Slice, e.at, e.seq, e.State, e.Summary, e.By, e.Why, string(e.Record), e.revision)
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		added += int(n)
		if n == 0 && e.seq > 0 {
			if _, err := place.ExecContext(ctx, e.seq, e.ID, e.seq); err != nil {
				return 0, err
			}
		}
	}
	return added, nil
}
