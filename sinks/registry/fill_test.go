package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.etcd.io/bbolt"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/pgtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// follow fills in the background until the test ends.
func follow(t *testing.T, f *Filler, open func(int64) Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		f.Follow(ctx, place, open, FromDecisions)
		close(done)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// TestLockedDatabase: while another program holds the file, the filler waits and says so; then it catches up.
func TestLockedDatabase(t *testing.T) {
	testsize.Slow(t)
	path := filepath.Join(t.TempDir(), "h.db")
	s := open(t, Options{Config: Config{Store: File, Path: path, Timeout: time.Second}})
	holder, err := bbolt.Open(path, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	rs := decisions(t, 17, 30)
	f := eager(s)
	follow(t, f, from(rs, false))
	eventually.True(t, "failures", func() bool { return f.Failures.Load() > 2 })
	if st := f.Progress(); st.Up || !strings.Contains(st.Error, "another process holds the lock") ||
		f.Stored.Load() != 0 {
		t.Errorf("status while the file is locked: %+v, %d stored", st, f.Stored.Load())
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	want := ofModels(reference(t, rs))
	eventually.True(t, "the entries", func() bool { return f.Progress().Up && int(f.Stored.Load()) == len(want) })
	same(t, "after the lock", all(t, s, 0), want)
}

// failing is a source that fails where its records end.
type failing struct{ tape }

func (s *failing) Next(ctx context.Context) (pipeline.Record, error) {
	if len(s.rs) == 0 {
		return pipeline.Record{}, errors.New("the broker hung up")
	}
	return s.tape.Next(ctx)
}

// TestPauseBeginsAnew: a fault after a time in which all went well is tried again at once, however long the pauses of
// one before had become.
func TestPauseBeginsAnew(t *testing.T) {
	s := open(t, Options{Config: Config{Store: File, Path: filepath.Join(t.TempDir(), "h.db")}})
	rs := decisions(t, 17, 3)
	idle := pipeline.Record{Idle: true}
	for name, good := range map[string][]pipeline.Record{"written": append(rs[:1:1], idle), "nothing new": {idle}} {
		f := NewFiller(s, quiet())
		var pauses []time.Duration
		f.pause = func(_ context.Context, d time.Duration) { pauses = append(pauses, d/f.first) }
		const faults = 5
		opened := 0
		ctx, cancel := context.WithCancel(t.Context())
		f.Follow(ctx, place, func(int64) Source {
			switch opened++; opened {
			case faults:
				return &failing{tape{rs: good}}
			case faults + 1:
				cancel()
			}
			return &failing{}
		}, FromDecisions)
		if want := []time.Duration{1, 2, 4, 8, 1}; !slices.Equal(pauses, want) {
			t.Errorf("%s: pauses of %d times the first, want %d", name, pauses, want)
		}
	}
}

// TestFullDatabase: there is no more room. What was written stays, what was not comes when there is.
func TestFullDatabase(t *testing.T) {
	s := open(t, Options{Config: Config{Store: File, Path: filepath.Join(t.TempDir(), "h.db")}})
	d := s.db.(*file)
	limit := func(bytes int) {
		d.mu.Lock()
		d.most = bytes
		d.mu.Unlock()
	}
	limit(128 << 10)
	rs := decisions(t, 19, 800)
	f := eager(s)
	follow(t, f, from(rs, false))
	eventually.True(t, "no room", func() bool { return strings.Contains(f.Progress().Error, "maximum size") })
	limit(0)
	want := ofModels(reference(t, rs))
	eventually.True(t, "the entries", func() bool { return f.Progress().Up && int(f.Stored.Load()) == len(want) })
	same(t, "after there was room", all(t, s, 0), want)
}

// TestDamagedFile: whatever is wrong with a file, it is refused in words, nothing else ends, and once it is away it is
// filled again.
func TestDamagedFile(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "h.db")
	rs := decisions(t, 29, 400)
	put(t, open(t, Options{Config: Config{Store: File, Path: whole}}), rs, rand.New(rand.NewPCG(1, 1)))
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := ofModels(reference(t, rs))
	r := rand.New(rand.NewPCG(2, 2))
	damage := map[string]func([]byte) []byte{
		"no database": func([]byte) []byte { return []byte(strings.Repeat("no database at all\n", 5000)) },
		"short":       func(b []byte) []byte { return b[:100] },
		"cut off":     func(b []byte) []byte { return b[:len(b)/2] },
		"zeros":       func(b []byte) []byte { clear(b[4*os.Getpagesize():]); return b },
		"noise": func(b []byte) []byte {
			for range len(b) / 50 {
				b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
			}
			return b
		},
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			cfg := Options{Config: Config{Store: File, Path: filepath.Join(t.TempDir(), "h.db"), Rows: 10}}
			if err := os.WriteFile(cfg.Path, f(bytes.Clone(good)), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, cfg)
			var failed []error
			for _, model := range []string{"m0", "m1", "m2"} {
				_, err := s.Query(t.Context(), Search{Model: model, Records: true, Limit: 1000})
				failed = append(failed, err)
			}
			_, err := s.Prune(t.Context(), nil)
			if err := errors.Join(append(failed, err)...); err == nil ||
				!strings.Contains(err.Error(), "is damaged; remove it") {
				t.Errorf("a damaged file: %v", err)
			}
			if err := os.Remove(cfg.Path); err != nil {
				t.Fatal(err)
			}
			put(t, s, rs, rand.New(rand.NewPCG(3, 3)))
			same(t, "filled again", all(t, s, 0), want)
		})
	}
}

// TestServerDies: PostgreSQL is killed while it is being filled, and comes back.
func TestServerDies(t *testing.T) {
	testsize.Slow(t)
	server := pgtest.Start(t)
	s := open(t, Options{Config: Config{Store: Postgres, Timeout: 20 * time.Second}, DSN: server.Database(t)})
	rs := decisions(t, 21, 600)
	f := eager(s)
	more := make(chan []pipeline.Record, 1)
	follow(t, f, func(next int64) Source {
		return &growing{tape: from(rs[:300], false)(next).(*tape), more: more}
	})
	eventually.True(t, "the first half", func() bool {
		n, err := s.Position(t.Context(), place)
		return err == nil &&
			n == rs[299].Offset+1
	})
	server.Kill()
	more <- rs[300:]
	eventually.True(t, "failures", func() bool { return f.Failures.Load() > 0 && !f.Progress().Up })
	if _, err := s.Query(t.Context(), Search{Model: "m1"}); err == nil ||
		strings.Contains(err.Error(), pgtest.Password) {
		t.Errorf("a query without a server: %v", err)
	}
	if err := server.Launch(); err != nil {
		t.Fatal(err)
	}
	want := ofModels(reference(t, rs))
	eventually.True(t, "the entries", func() bool { return f.Progress().Up && int(f.Stored.Load()) == len(want) })
	same(t, "after the server came back", all(t, s, 0), want)
}

// TestTwoFillers: two processes fill one database at once.
func TestTwoFillers(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 23, 500)
		stop := make(chan struct{}, 2)
		fillers := []*Filler{eager(open(t, cfg)), eager(open(t, cfg))}
		for _, f := range fillers {
			go func() {
				f.Follow(t.Context(), place, from(rs, true), FromDecisions)
				stop <- struct{}{}
			}()
		}
		<-stop
		<-stop
		want := ofModels(reference(t, rs))
		same(t, "filled by two", all(t, open(t, cfg), 0), want)
		if n := fillers[0].Stored.Load() + fillers[1].Stored.Load(); int(n) != len(want) {
			t.Errorf("%d entries were stored, want %d", n, len(want))
		}
	})
}

// gap is a source whose log begins after the offset that was asked for.
type gap struct{ tape }

func (g *gap) Next(context.Context) (pipeline.Record, error) {
	return pipeline.Record{}, kafka.OffsetOutOfRange
}

// TestOffsetGone: the log does not reach back to the position any more, or the topic was made anew.
func TestOffsetGone(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := decisions(t, 25, 40)
		s := open(t, cfg)
		if _, err := s.Put(t.Context(), place, 0, 1000, nil); err != nil {
			t.Fatal(err)
		}
		eager(s).Follow(t.Context(), place, func(next int64) Source {
			if next == 1000 {
				return &gap{}
			}
			return from(rs, true)(next)
		}, FromDecisions)
		same(t, "from the log's start", all(t, s, 0), ofModels(reference(t, rs)))
	})
}

// TestUnreadableRecords are counted and skipped.
func TestUnreadableRecords(t *testing.T) {
	rs := decisions(t, 27, 20)
	want := ofModels(reference(t, rs))
	for i, bad := range []string{"{", "null", `{"kind":"calibrator"}`, `{"kind":"mystery","record":{"model":"m"}}`,
		`{"kind":"alert","record":{"model":7}}`, "\xff", `{"kind":"calibrator","record":null}`} {
		rs = append(rs, pipeline.Record{Offset: int64(1000 + i), Value: []byte(bad)})
	}
	rs = append(rs, pipeline.Record{Offset: 2000}) // a tombstone
	s := open(t, Options{Config: Config{Store: File, Path: filepath.Join(t.TempDir(), "h.db")}})
	f := eager(s)
	f.Follow(t.Context(), place, from(rs, true), FromDecisions)
	same(t, "the others", all(t, s, 0), want)
	if n := f.Unreadable.Load(); n != 7 {
		t.Errorf("%d unreadable, want 7", n)
	}
	if next, err := s.Position(t.Context(), place); err != nil || next != 2001 {
		t.Errorf("position %d, %v; want 2001", next, err)
	}
}
