package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Place is a partition of a topic.
type Place struct {
	Cluster   string // the brokers' id of it
	Topic     string
	Partition int
}

// ErrMoved says that the database is not where the writer left it: it was emptied, or made anew. The writer must ask
// for the position again, and begin there.
var ErrMoved = errors.New("the database has another position")

// database runs transactions. It connects at the first one, and again after a failure.
type database interface {
	view(ctx context.Context, f func(reader) error) error
	update(ctx context.Context, f func(writer) error) error
	close() error
}

// reader reads in a transaction.
type reader interface {
	// position is the first offset of a place that is not in the database. A writer's is locked until its transaction
	// ends.
	positionOf(p Place) (next int64, err error)
	// entries yields what a filter selects, newest first, until yield returns false.
	entries(f *filter, yield func(*Entry) bool) error
	models() ([]string, error)
}

// writer changes the database in a transaction.
type writer interface {
	reader
	move(p Place, next int64) error
	// add adds entries and returns how many were not there. One that is there gets its place on the decisions topic,
	// the first where it was written twice: so the order of entries does not depend on which topic was read first.
	add(es []Entry) (added int, err error)
	// remove removes the entries of a model before a position, except those of the given ids.
	remove(model string, before position, keep map[string]bool) (removed int64, err error)
}

// Store is the database. Safe for concurrent use.
type Store struct {
	cfg Options
	db  database
}

// Open returns a store. It connects to nothing yet: a database that does not answer is an error of whoever asks it
// something.
func Open(cfg Options) (*Store, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	var db database
	var err error
	switch cfg.Store {
	case File:
		db, err = newFile(&cfg)
	case Postgres:
		db, err = newPostgres(&cfg)
	default:
		err = fmt.Errorf("history.store %q: must be %s or %s", cfg.Store, File, Postgres)
	}
	if err != nil {
		return nil, err
	}
	return &Store{cfg: cfg, db: db}, nil
}

// Close closes the database. A store that was closed answers with errors.
func (s *Store) Close() error { return s.db.close() }

var errClosed = errors.New("the database is closed")

func (s *Store) view(ctx context.Context, what string, f func(reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.db.view(ctx, f); err != nil {
		return fmt.Errorf("history: %s: %w", what, err)
	}
	return nil
}

func (s *Store) update(ctx context.Context, what string, f func(writer) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.db.update(ctx, f); err != nil {
		return fmt.Errorf("history: %s: %w", what, err)
	}
	return nil
}

// Position is the first offset that is not in the database yet.
func (s *Store) Position(ctx context.Context, p Place) (next int64, err error) {
	err = s.view(ctx, "position", func(r reader) error {
		next, err = r.positionOf(p)
		return err
	})
	return next, err
}

// Rewind has a place filled from its log's start again, where its position is still the given one: the offset is no
// longer in the log.
func (s *Store) Rewind(ctx context.Context, p Place, from int64) error {
	return s.update(ctx, "rewind", func(w writer) error {
		next, err := w.positionOf(p)
		if err != nil || next != from {
			return err
		}
		return w.move(p, 0)
	})
}

// Put writes the entries of the records of a place from offset from up to offset upTo, and that they are in. Entries
// that another process has written change nothing. added is how many were not there.
func (s *Store) Put(ctx context.Context, p Place, from, upTo int64, es []Entry) (added int, err error) {
	// In one order, so that processes that write the same never wait for each other in a circle.
	es = slices.Clone(es)
	slices.SortStableFunc(es, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	err = s.update(ctx, "write", func(w writer) error {
		added = 0
		next, err := w.positionOf(p)
		if err != nil || next >= upTo {
			return err
		}
		if next < from {
			return fmt.Errorf("%w: %s partition %d is at %d, not %d", ErrMoved, p.Topic, p.Partition, next, from)
		}
		if added, err = w.add(es); err != nil {
			return err
		}
		return w.move(p, upTo)
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// Models are the models that have entries, sorted as the database sorts.
func (s *Store) Models(ctx context.Context) (models []string, err error) {
	err = s.view(ctx, "models", func(r reader) error {
		models, err = r.models()
		return err
	})
	return models, err
}
