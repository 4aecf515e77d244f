package registry

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/pgtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// pg is the PostgreSQL of all tests, started by the first that wants it.
var pg = sync.OnceValues(pgtest.New)

func TestMain(m *testing.M) {
	wanted := false
	start := pg
	pg = func() (*pgtest.Server, error) { wanted = true; return start() }
	code := m.Run()
	if wanted {
		if s, err := start(); err == nil {
			s.Close()
		}
	}
	os.Exit(code)
}

// server is the address of an empty database; the test is skipped where there is no PostgreSQL.
func server(t *testing.T) string {
	t.Helper()
	s, err := pg()
	if errors.Is(err, pgtest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Database(t)
}

// each runs a test on a fresh file and on a fresh PostgreSQL.
func each(t *testing.T, test func(t *testing.T, cfg Options)) {
	t.Run(File, func(t *testing.T) {
		test(t, Options{Config: Config{Store: File, Path: filepath.Join(t.TempDir(), "sub", "history.db"),
			Timeout: eventually.Patience}})
	})
	t.Run(Postgres, func(t *testing.T) {
		test(t, Options{Config: Config{Store: Postgres, Timeout: eventually.Patience}, DSN: server(t)})
	})
}

// empty removes everything from the database of a configuration.
func empty(t *testing.T, cfg Options) {
	t.Helper()
	if cfg.Store == File {
		if err := os.Remove(cfg.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	server := connect(t, cfg)
	for _, table := range []string{"entries", "positions"} {
		if _, err := server.Exec("DELETE FROM plumbline_" + table); err != nil {
			t.Fatal(err)
		}
	}
}

func connect(t *testing.T, cfg Options) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func open(t *testing.T, cfg Options) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var place = Place{Cluster: "c", Topic: "decisions", Partition: 3}

// moment is the event time number i.
func moment(i int) record.Time { return record.At(int64(1_700_000_000+i) * int64(time.Second)) }

// decisions are n records of a decisions topic about a few models; several are of one moment, and some come twice.
func decisions(t *testing.T, seed uint64, n int) []pipeline.Record {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var out []pipeline.Record
	for len(out) < n {
		model, version := fmt.Sprintf("m%d", r.IntN(3)), fmt.Sprint(r.IntN(2))
		var kind string
		var body any
		switch r.IntN(4) {
		case 0:
			kind, body = record.DecisionAlert, record.Alert{Model: model, Version: version, Slice: "region=eu",
				Rule: "excess-ece", State: "firing", At: moment(len(out) / 5), Message: fmt.Sprint(len(out))}
		case 1:
			kind, body = record.DecisionVerdict, record.Verdict{Kind: record.HeadVerdict, Model: model,
				Version: version, State: "ready", DecidedAt: moment(len(out) / 5), Number: len(out)}
		default:
			kind, body = record.DecisionCalibrator, record.Calibrator{Model: model, Version: version,
				DecidedAt: moment(len(out) / 5), Outcome: "no change: nothing better", Revision: len(out),
				Evidence: record.Evidence{TestRows: len(out), LogE: r.Float64()}}
		}
		out = append(out, decision(t, kind, model, version, body))
		if r.IntN(6) == 0 {
			out = append(out, out[r.IntN(len(out))])
		}
	}
	for i := range out {
		out[i].Offset = int64(2 * i) // compaction and markers leave gaps
	}
	return out
}

func decision(t *testing.T, kind, model, version string, body any) pipeline.Record {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(record.Decision{Schema: 1, Kind: kind, Model: model, Version: version, Record: b})
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Record{Topic: place.Topic, Partition: int32(place.Partition), Value: value, Time: 1}
}

// reference is what a database of these records must hold, newest first: each record once, at its first place.
func reference(t *testing.T, rs []pipeline.Record) []Entry {
	t.Helper()
	var out []Entry
	for i := range rs {
		e, ok, err := FromDecisions(&rs[i])
		if err != nil || !ok {
			t.Fatalf("record %d: %v, %v", i, ok, err)
		}
		if !slices.ContainsFunc(out, func(o Entry) bool { return o.ID == e.ID }) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return -a.rank().compare(b.rank())
	})
	return out
}

// all reads everything that a store has of the models, by pages of so many.
func all(t *testing.T, s *Store, limit int) []Entry {
	t.Helper()
	models, err := s.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []Entry
	for _, m := range models {
		out = append(out, pages(t, s, Search{Model: m, Records: true, Limit: limit})...)
	}
	return out
}

func pages(t *testing.T, s *Store, q Search) (out []Entry) {
	t.Helper()
	for {
		p, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if q.Limit > 0 && len(p.Entries) > q.Limit {
			t.Fatalf("a page has %d entries, want at most %d", len(p.Entries), q.Limit)
		}
		out = append(out, p.Entries...)
		if q.Cursor = p.Next; q.Cursor == "" {
			return out
		}
	}
}

// ofModels sorts a reference as all returns it: by model.
func ofModels(es []Entry) []Entry {
	out := slices.Clone(es)
	slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Compare(a.Model, b.Model) })
	return out
}

func same(t *testing.T, what string, got, want []Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d entries, want %d", what, len(got), len(want))
	}
	for i := range got {
		g, w := fmt.Sprintf("%+v %s", got[i], got[i].Record), fmt.Sprintf("%+v %s", want[i], want[i].Record)
		if g != w {
			t.Fatalf("%s: entry %d is\n%s\nwant\n%s", what, i, g, w)
		}
	}
}

// tape is a source of records, which ends where they do, or waits there.
type tape struct {
	rs    []pipeline.Record
	ends  bool
	idled bool
}

func (s *tape) Next(ctx context.Context) (pipeline.Record, error) {
	if ctx.Err() != nil {
		return pipeline.Record{}, ctx.Err()
	}
	if len(s.rs) > 0 {
		r := s.rs[0]
		s.rs = s.rs[1:]
		return r, nil
	}
	if s.ends {
		return pipeline.Record{}, io.EOF
	}
	if !s.idled {
		s.idled = true
		return pipeline.Record{Idle: true}, nil
	}
	<-ctx.Done()
	return pipeline.Record{}, ctx.Err()
}

func (s *tape) Behind(int64) (int64, bool) { return 0, false }
func (s *tape) Close() error               { return nil }

// from opens a tape at an offset.
func from(rs []pipeline.Record, ends bool) func(next int64) Source {
	return func(next int64) Source {
		i := slices.IndexFunc(rs, func(r pipeline.Record) bool { return r.Offset >= next })
		if i < 0 {
			i = len(rs)
		}
		return &tape{rs: rs[i:], ends: ends}
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// eager is a filler that tries again at once.
func eager(s *Store) *Filler {
	f := NewFiller(s, quiet())
	f.first = time.Millisecond
	return f
}
