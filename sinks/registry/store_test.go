package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/pgtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// put writes records in batches of random sizes, some of them again.
func put(t *testing.T, s *Store, rs []pipeline.Record, r *rand.Rand) {
	t.Helper()
	next := int64(0)
	for i := 0; i < len(rs); {
		n := min(1+r.IntN(20), len(rs)-i)
		var es []Entry
		for j := i; j < i+n; j++ {
			e, _, err := FromDecisions(&rs[j])
			if err != nil {
				t.Fatal(err)
			}
			es = append(es, e)
		}
		upTo := rs[i+n-1].Offset + 1
		for range 1 + r.IntN(2) { // the second time it is there
			if _, err := s.Put(t.Context(), place, next, upTo, es); err != nil {
				t.Fatal(err)
			}
		}
		next, i = upTo, i+n
	}
	if got, err := s.Position(t.Context(), place); err != nil || got != next {
		t.Errorf("position %d, %v; want %d", got, err, next)
	}
}

// TestSameEntries: whatever the batches, the pages and the number of repeats, the entries are those of a slow
// reference.
func TestSameEntries(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 1, 400)
		s := open(t, cfg)
		put(t, s, rs, rand.New(rand.NewPCG(2, 2)))
		want := ofModels(reference(t, rs))
		for _, limit := range []int{0, 1, 7, 1000} {
			same(t, fmt.Sprintf("pages of %d", limit), all(t, s, limit), want)
		}
	})
}

func TestQuery(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 3, 300)
		s := open(t, cfg)
		put(t, s, rs, rand.New(rand.NewPCG(4, 4)))
		want := reference(t, rs)
		at := func(i int) *int64 { ns := int64(1_700_000_000+i) * int64(time.Second); return &ns }
		for _, q := range []Search{
			{Model: "m1"}, {Model: "m1", Version: "1"}, {Model: "m1", Kinds: []string{"alert"}}, {Model: "m2",
				Kinds: []string{"alert", "verdict"}},
			{Model: "m0", Since: at(20)}, {Model: "m0", Until: at(20)}, {Model: "m0", Since: at(20), Until: at(30),
				Version: "0", Kinds: []string{"calibrator"}},
			{Model: "nobody"}, {Model: "m1", Version: "9"}, {Model: "m1' OR 1=1 --"}, {Model: "m\x001\xff"},
		} {
			for _, limit := range []int{0, 3} {
				q.Limit = limit
				var some []Entry
				for _, e := range want {
					if e.Model == q.Model && (q.Version == "" || e.Version == q.Version) &&
						(len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) &&
						(q.Since == nil || e.At.UnixNano() >= *q.Since) &&
						(q.Until == nil || e.At.UnixNano() < *q.Until) {
						e.Record = nil
						some = append(some, e)
					}
				}
				same(t, fmt.Sprintf("%+v", q), pages(t, s, q), some)
			}
		}
		for _, cursor := range []string{"x", "1.2", "1.2.zz", "a.2.00", "1.b.00", "1.2.00.4"} {
			if _, err := s.Query(t.Context(), Search{Model: "m1", Cursor: cursor}); !errors.Is(err, ErrCursor) {
				t.Errorf("cursor %q: %v, want ErrCursor", cursor, err)
			}
		}
	})
}

// TestCrash cuts writes off at random moments: what is there is whole batches, and going on gives the same entries.
func TestCrash(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 5, 300)
		r := rand.New(rand.NewPCG(6, 6))
		cut, runs := 0, testsize.Short(5, 40)
		for tries := 0; ; tries++ {
			s, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if tries < runs {
				time.AfterFunc(time.Duration(r.IntN(20_000))*time.Microsecond, cancel)
			}
			f := eager(s)
			f.Follow(ctx, place, from(rs, true), FromDecisions)
			if ctx.Err() != nil {
				cut++
			}
			cancel()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if tries >= runs {
				break
			}
		}
		t.Logf("%d of %d runs were cut off", cut, runs)
		same(t, "after crashes", all(t, open(t, cfg), 0), ofModels(reference(t, rs)))
	})
}

// TestTopicsInAnyOrder: the calibrators topic has what the decisions topic has, too. Whichever is read first, and with
// whatever repeats, the entries and their order are the same.
func TestTopicsInAnyOrder(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		var both, other []pipeline.Record
		for i := range 40 {
			c := record.Calibrator{Model: "m", Version: "1", DecidedAt: moment(i / 10), Revision: i, Published: true,
				Outcome: "published: x"}
			d := decision(t, record.DecisionCalibrator, "m", "1", c)
			d.Offset = int64(i)
			both = append(both, d)
			plain := d
			plain.Value = []byte(mustJSON(t, c))
			other = append(other, plain)
		}
		want := reference(t, both)
		orders := [][]string{{"decisions", "calibrators"}, {"calibrators", "decisions"}}
		for i, order := range orders {
			s := open(t, cfg)
			for _, topic := range order {
				p := Place{Cluster: fmt.Sprint("c", i), Topic: topic}
				if topic == "decisions" {
					eager(s).Follow(t.Context(), p, from(both, true), FromDecisions)
				} else {
					eager(s).Follow(t.Context(), p, from(other, true), FromTopic(record.DecisionCalibrator))
				}
			}
			same(t, strings.Join(order, ", "), pages(t, s, Search{Model: "m", Records: true}), want)
			empty(t, cfg)
		}
	})
}

// TestVersion refuses a database of another version, and leaves it as it is.
func TestVersion(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		s := open(t, cfg)
		put(t, s, decisions(t, 9, 20), rand.New(rand.NewPCG(8, 8)))
		setVersion := func(n int) {
			t.Helper()
			if cfg.Store == Postgres {
				if _, err := connect(t, cfg).Exec("UPDATE plumbline_schema SET version = $1", n); err != nil {
					t.Fatal(err)
				}
				return
			}
			db, err := bbolt.Open(cfg.Path, 0o644, nil)
			if err == nil {
				err = db.Update(func(tx *bbolt.Tx) error {
					return tx.Bucket(bucketMeta).Put(keyFormat,
						[]byte{byte(n)})
				})
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		before := all(t, s, 0)
		setVersion(9)
		_, err := open(t, cfg).Position(t.Context(), place)
		if err == nil || !strings.Contains(err.Error(), "9") || !strings.Contains(err.Error(), "this build knows 1") {
			t.Errorf("a database of version 9: %v", err)
		}
		setVersion(1)
		same(t, "after it", all(t, open(t, cfg), 0), before)
	})
}

// TestPrune holds retention against a reference, and fills a second database anew: it keeps the same.
func TestPrune(t *testing.T) {
	testsize.Slow(t)
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 11, 300)
		order := decision(t, record.DecisionOrder, "m1", "0", record.Order{Kind: record.HeadOrder, ID: "m1/0+head1",
			Action: "pin", By: "ann", At: record.At(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())})
		order.Offset = rs[len(rs)-1].Offset + 1
		rs = append(rs, order)
		for _, c := range []Config{{Rows: 10}, {MaxAge: 20 * time.Second}, {Rows: 25, MaxAge: 30 * time.Second},
			{Rows: 100_000, MaxAge: time.Hour}, {}} {
			c.Store, c.Path, c.Timeout = cfg.Store, cfg.Path, cfg.Timeout
			s := open(t, Options{Config: c, DSN: cfg.DSN})
			put(t, s, rs, rand.New(rand.NewPCG(12, 12)))
			removed, err := s.Prune(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			full := ofModels(reference(t, rs))
			want := kept(full, c)
			same(t, fmt.Sprintf("rows %d, age %s", c.Rows, c.MaxAge), all(t, s, 0), want)
			if int(removed) != len(full)-len(want) {
				t.Errorf("%d removed, want %d", removed, len(full)-len(want))
			}
			empty(t, cfg)
		}
	})
}

// kept is what retention leaves of entries, newest first by model.
func kept(es []Entry, c Config) (out []Entry) {
	newest, n := map[string]int64{}, map[string]int64{}
	for _, e := range es {
		if e.Kind != record.DecisionOrder {
			newest[e.Model] = max(newest[e.Model], e.At.UnixNano())
		}
	}
	for _, e := range es {
		if c.MaxAge > 0 && e.At.UnixNano() < newest[e.Model]-int64(c.MaxAge) {
			continue
		}
		if n[e.Model]++; c.Rows > 0 && n[e.Model] > c.Rows {
			continue
		}
		out = append(out, e)
	}
	return out
}

// TestPagesOfLargeRecords end before their limit, and leave nothing out.
func TestPagesOfLargeRecords(t *testing.T) {
	s := open(t, Options{Config: Config{Store: File, Path: t.TempDir() + "/h.db", Timeout: eventually.Patience}})
	var es []Entry
	for i := range 5 {
		e := Entry{ID: fmt.Sprintf("%032x", i), Kind: "calibrator", Model: "m",
			Record: []byte(`"` + strings.Repeat("x", pageBytes/2-1000) + `"`), At: record.At(int64(i))}
		if i == 2 {
			e.Record = []byte(`"` + strings.Repeat("y", pageBytes+1) + `"`)
		}
		es = append(es, e)
	}
	if _, err := s.Put(t.Context(), place, 0, 5, es); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	q := Search{Model: "m", Records: true}
	for {
		p, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(p.Entries))
		if q.Cursor = p.Next; q.Cursor == "" {
			break
		}
	}
	if !slices.Equal(sizes, []int{2, 1, 2}) {
		t.Errorf("pages of %v entries, want 2, 1, 2", sizes)
	}
}

// TestMoved: a database that was emptied is filled from the start, not from where its writer was.
func TestMoved(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 13, 60)
		s := open(t, cfg)
		put(t, s, rs[:40], rand.New(rand.NewPCG(1, 1)))
		empty(t, cfg)
		last := rs[len(rs)-1].Offset + 1
		if _, err := s.Put(t.Context(), place, rs[40].Offset, last, nil); !errors.Is(err, ErrMoved) {
			t.Errorf("a write past the position: %v, want ErrMoved", err)
		}
		if next, err := s.Position(t.Context(), place); err != nil || next != 0 {
			t.Errorf("position %d, %v; want 0", next, err)
		}
	})
}

// TestFileRemoved: somebody removes the file of a database that is open; it is made anew, and filled from the start.
func TestFileRemoved(t *testing.T) {
	cfg := Options{Config: Config{Store: File, Path: t.TempDir() + "/h.db"}}
	rs := decisions(t, 15, 100)
	s := open(t, cfg)
	f := eager(s)
	ctx, cancel := context.WithCancel(t.Context())
	more := make(chan []pipeline.Record, 1)
	done := make(chan struct{})
	go func() {
		f.Follow(ctx, place, func(next int64) Source {
			return &growing{tape: from(rs[:50], false)(next).(*tape), more: more}
		}, FromDecisions)
		close(done)
	}()
	want := len(reference(t, rs[:50]))
	held := func() (n int) {
		for _, m := range []string{"m0", "m1", "m2"} {
			p, err := s.Query(t.Context(), Search{Model: m, Limit: 1000})
			if err != nil {
				return -1 // it is being opened again
			}
			n += len(p.Entries)
		}
		return n
	}
	eventually.True(t, "the first half", func() bool { return held() == want })
	if err := os.Remove(cfg.Path); err != nil {
		t.Fatal(err)
	}
	more <- rs[50:51]
	eventually.True(t, "the first half again", func() bool {
		return held() == want &&
			f.Stored.Load() == int64(2*want)
	})
	cancel()
	<-done
}

// growing is a tape that goes on with what comes.
type growing struct {
	*tape
	more chan []pipeline.Record
}

func (g *growing) Next(ctx context.Context) (pipeline.Record, error) {
	for len(g.rs) == 0 && g.idled {
		select {
		case g.rs = <-g.more:
		case <-ctx.Done():
			return pipeline.Record{}, ctx.Err()
		}
	}
	return g.tape.Next(ctx)
}

// TestNoPasswordIsShown: no error of a server that refuses or is not there has the password.
func TestNoPasswordIsShown(t *testing.T) {
	const secret = "Tr0ub4dor&3"
	for _, dsn := range []string{"postgres://u:" + "Tr0ub4dor%263" + "@127.0.0.1:1/db",
		"host=127.0.0.1 port=1 user=u password=" + secret, "postgres://u:" + secret + "@[bad", "host=x password=" +
			secret + " sslmode=nonsense"} {
		s, err := Open(Options{Config: Config{Store: Postgres, Timeout: 2 * time.Second}, DSN: dsn})
		if err == nil {
			_, err = s.Position(t.Context(), place)
			_ = s.Close()
		}
		if err == nil || strings.Contains(err.Error(), "Tr0ub4dor") ||
			strings.Contains(fmt.Sprintf("%+v %#v", err, err.Error()), "Tr0ub4dor") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
	dsn := strings.Replace(server(t), pgtest.Password, secret, 1)
	s := open(t, Options{Config: Config{Store: Postgres}, DSN: dsn})
	if _, err := s.Position(t.Context(), place); err == nil || strings.Contains(err.Error(), secret) ||
		!strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("wrong password: %v", err)
	}
}

// TestLargeRecordsOfAServer: a record that somebody wrote into the database, larger than any message, is not read.
func TestLargeRecordsOfAServer(t *testing.T) {
	testsize.Slow(t)
	cfg := Options{Config: Config{Store: Postgres, Timeout: eventually.Patience}, DSN: server(t)}
	s := open(t, cfg)
	if _, err := s.Query(t.Context(), Search{Model: "m"}); err != nil { // the tables are there
		t.Fatal(err)
	}
	_, err := connect(t, cfg).Exec(`INSERT INTO plumbline_entries
		(id, kind, model, version, slice, at, seq, state, summary, who, why, head, revision, record)
		VALUES ('00', 'calibrator', 'm', '1', '', 5, 1, 'published', 'forged', '', '', 0, 7, repeat('x', 70000000))`)
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.Query(t.Context(), Search{Model: "m", Records: true})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Record != nil || page.Entries[0].Summary != "forged" {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
	if body, ok, err := s.Published(t.Context(), "m", "1", 7); ok || err != nil {
		t.Errorf("a calibrator of %d bytes, %v", len(body), err)
	}
}
