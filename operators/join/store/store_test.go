package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
)

// plain is a store as one would write it first.
type plain struct {
	rows  map[uint64]Row
	state map[uint64]State
	next  uint64
}

func (p *plain) numbers() []uint64 {
	var out []uint64
	for n := range p.rows {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func randomRow(r *rand.Rand) Row {
	row := Row{ID: ID{byte(r.IntN(40)), 7: 1}, Body: make([]byte, r.IntN(60))}
	for i := range row.Body {
		row.Body[i] = byte(r.Uint32())
	}
	for range r.IntN(4) {
		n := Name{}
		switch r.IntN(6) {
		case 0:
		case 1: // never the same, and some too long to be remembered
			n = Name{strings.Repeat("x", r.IntN(30)*r.IntN(300)) + fmt.Sprint(r.Uint32()), true}
		default:
			n = Name{fmt.Sprint("name-", r.IntN(5)), true}
		}
		row.Names = append(row.Names, n)
	}
	return row
}

// TestAgainstPlain does random things to a store and to a plain one, and puts the store through its checkpoint now and
// then; after each step both tell the same.
func TestAgainstPlain(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		o := Options{Dir: t.TempDir(), Prefix: "s", SegmentBytes: 300 << (3 * (seed % 3)), MaxOpen: 2}
		s, p := New(o), &plain{rows: map[uint64]Row{}, state: map[uint64]State{}}
		for step := range 1500 {
			ns := p.numbers()
			switch k := r.IntN(10); {
			case k < 4 || len(ns) == 0:
				row := randomRow(r)
				n, err := s.Append(&row)
				if err != nil || n != p.next {
					t.Fatalf("append: row %d, %v, want %d", n, err, p.next)
				}
				p.rows[n], p.state[n] = row, 0
				p.next++
			case k < 6: // mostly the oldest
				n := ns[min(r.IntN(len(ns)), r.IntN(5))]
				s.Remove(p.rows[n].ID, n)
				delete(p.rows, n)
				delete(p.state, n)
			case k < 7:
				n := ns[r.IntN(len(ns))]
				p.state[n] = State(r.IntN(3))
				s.SetState(n, p.state[n])
			case k < 8 && step%50 == 0:
				s = again(t, s, o)
			default:
				check(t, s, p, ID{byte(r.IntN(40)), 7: 1}, r)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(o.Dir); len(left) > 0 {
			t.Errorf("seed %d: %d entries left", seed, len(left))
		}
	}
}

func check(t *testing.T, s *Store, p *plain, id ID, r *rand.Rand) {
	t.Helper()
	ns := p.numbers()
	oldest, ok := s.Oldest()
	if s.Len() != len(ns) || s.Next() != p.next || ok != (len(ns) > 0) || ok && oldest != ns[0] {
		t.Fatalf("%d rows before %d, oldest %d; want %d before %d", s.Len(), s.Next(), oldest, len(ns), p.next)
	}
	found := s.Candidates(id, nil)
	if !slices.IsSortedFunc(found, func(a, b uint64) int { return int(int64(b - a)) }) {
		t.Fatalf("candidates %v, want the newest first", found)
	}
	for _, n := range ns {
		if p.rows[n].ID == id && !slices.Contains(found, n) {
			t.Fatalf("row %d of the id is not found", n)
		}
	}
	for _, n := range found {
		row, err := s.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		want := p.rows[n]
		if row.ID != want.ID || string(row.Body) != string(want.Body) || len(row.Names)+len(want.Names) > 0 &&
			!reflect.DeepEqual(row.Names, want.Names) || s.StateOf(n) != p.state[n] {
			t.Fatalf("row %d is %v in state %d, want %v in %d", n, row, s.StateOf(n), want, p.state[n])
		}
	}
	from := r.Uint64N(p.next + 1)
	got, ok := s.After(from, func(st State) bool { return st == 2 })
	i := slices.IndexFunc(ns, func(n uint64) bool { return n >= from && p.state[n] == 2 })
	if ok != (i >= 0) || ok && got != ns[i] {
		t.Fatalf("first row in state 2 from %d on: %d, %v", from, got, ok)
	}
}

// again restores a store from its checkpoint and closes the one before.
func again(t *testing.T, s *Store, o Options) *Store {
	t.Helper()
	state := s.AppendState(nil)
	paths := map[string]string{}
	for _, f := range s.Files() {
		paths[f.Name] = f.Path
	}
	next := New(o)
	r := binenc.NewReader(state)
	visited := 0
	err := next.Restore(&r, func(name, path string) error { return os.Link(paths[name], path) },
		func(n uint64, st State, _ *Row) error {
			visited++
			if st != s.StateOf(n) {
				t.Fatalf("row %d comes in state %d, want %d", n, st, s.StateOf(n))
			}
			return nil
		})
	if err != nil || r.Close() != nil || visited != s.Len() {
		t.Fatalf("restore: %v, %v, %d rows of %d", err, r.Close(), visited, s.Len())
	}
	if got := next.AppendState(nil); string(got) != string(state) {
		t.Fatalf("a state of %d bytes became one of %d", len(state), len(got))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return next
}

// TestFilesStayForTheirCheckpoint: a file of the last checkpoint may still have to be copied when its rows have gone.
func TestFilesStayForTheirCheckpoint(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), Prefix: "s", SegmentBytes: 1})
	defer s.Close()
	for i := range 3 {
		if _, err := s.Append(&Row{ID: ID{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Remove(ID{0}, 0) // in no checkpoint
	s.AppendState(nil)
	files := s.Files()
	s.Remove(ID{1}, 1)
	for _, f := range files {
		if _, err := os.Stat(f.Path); err != nil {
			t.Errorf("a file of the checkpoint: %v", err)
		}
	}
	s.AppendState(nil)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(files[0].Path), "*"))
	if err != nil || len(files) != 2 || len(left) != 1 {
		t.Errorf("%d files in the first checkpoint, %d after the second, %v; want 2 and 1", len(files), len(left), err)
	}
}

func TestWhatFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		s := New(Options{Dir: dir, Prefix: "s", SegmentBytes: 1})
		if _, err := s.Append(&Row{}); err == nil || !strings.Contains(err.Error(), "work directory") {
			t.Errorf("directory %q: %v, want an error of the work directory", dir, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := New(Options{Dir: t.TempDir(), Prefix: "s", SegmentBytes: 1})
	if _, err := s.Append(&Row{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.work.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read without the file: %v", err)
	}
	if _, err := s.Append(&Row{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("append without the directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
