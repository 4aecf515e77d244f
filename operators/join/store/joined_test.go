package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/testsize"
)

// plainJoined is a queue as one would write it first.
type plainJoined struct {
	ids  []ID
	rows []Met
}

func (p *plainJoined) find(id ID) (out []Met) {
	for i := range p.ids {
		if p.ids[i] == id {
			out = append(out, p.rows[i])
		}
	}
	return out
}

func sortedMet(ms []Met) []Met {
	out := slices.Clone(ms)
	slices.SortFunc(out, func(a, b Met) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

// againJoined restores a queue from its checkpoint, with its files copied aside, and closes the one before.
func againJoined(t *testing.T, j *Joined, o JoinedOptions) *Joined {
	t.Helper()
	state := j.AppendState(nil)
	files := map[string][]byte{}
	for _, f := range j.Files() {
		b, err := os.ReadFile(f.Path)
		if err != nil || int64(len(b)) != f.Bytes {
			t.Fatalf("file %s: %d bytes, %v, want %d", f.Name, len(b), err, f.Bytes)
		}
		files[f.Name] = b
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	same := j.o.InMemory == o.InMemory
	out := NewJoined(o)
	r := binenc.NewReader(state)
	if err := out.Restore(&r, func(name, path string) error {
		return os.WriteFile(path, files[name],
			0o644)
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := out.AppendState(nil); same && !bytes.Equal(got, state) {
		t.Fatalf("a state of %d bytes, %d before", len(got), len(state))
	}
	return out
}

// TestJoinedAgainstPlain does random things to a queue and to a plain one, and puts the queue through its checkpoint
// now and then, also into one that keeps its rows otherwise; after each step both tell the same.
func TestJoinedAgainstPlain(t *testing.T) {
	for seed := range uint64(testsize.Short(2, 8)) {
		r := rand.New(rand.NewPCG(seed, 6))
		o := JoinedOptions{Dir: t.TempDir(), Prefix: "s", BlockRows: []int{1, 5, 64}[seed%3], InMemory: seed%4 == 3}
		j, p := NewJoined(o), &plainJoined{}
		most := []int{0, 30, 200}[seed%3]
		filed := 0
		for step := range 3000 {
			switch k := r.IntN(10); {
			case k < 6:
				id := ID{byte(r.IntN(60)), 9: 1}
				m := Met{Key: Key{fmt.Sprint("m", r.IntN(3)), fmt.Sprint(r.IntN(2))}, TS: int64(step)}
				if err := j.Add(&id, m.TS, m.Key); err != nil {
					t.Fatal(err)
				}
				p.ids, p.rows = append(p.ids, id), append(p.rows, m)
			case k == 9 && step%7 == 0:
				if seed%2 == 1 && step%3 == 0 {
					o.InMemory = !o.InMemory
				}
				j = againJoined(t, j, o)
			}
			for j.Len() > most {
				j.Forget(1)
				p.ids, p.rows = p.ids[1:], p.rows[1:]
			}
			filed = max(filed, len(j.Files()))
			if j.Len() != len(p.ids) {
				t.Fatalf("seed %d, step %d: %d rows, want %d", seed, step, j.Len(), len(p.ids))
			}
			ts, ok := j.Oldest()
			if ok != (len(p.ids) > 0) || ok && ts != p.rows[0].TS {
				t.Fatalf("seed %d, step %d: the oldest is of %d, %t", seed, step, ts, ok)
			}
			for b := range 60 {
				id := ID{byte(b), 9: 1}
				if got, want := sortedMet(j.Find(&id)), sortedMet(p.find(id)); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: of id %d %v, want %v", seed, step, b, got, want)
				}
			}
		}
		if most > 0 && filed == 0 && seed%4 != 3 {
			t.Errorf("seed %d: no block became a file", seed)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.Dir, "*")); len(left) > 0 {
			t.Errorf("seed %d: %v left", seed, left)
		}
	}
}

// TestJoinedMemory bounds what a row takes: 26 bytes, one or two slots of the index, and blocks that are not full.
func TestJoinedMemory(t *testing.T) {
	const n = 300_000
	j := NewJoined(JoinedOptions{InMemory: true})
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 2 * n {
		var id ID
		for b := range id {
			id[b] = byte(r.Uint32())
		}
		if err := j.Add(&id, int64(i), Key{"m", "1"}); err != nil {
			t.Fatal(err)
		}
		if j.Len() > n {
			j.Forget(1)
		}
	}
	if got, want := j.Bytes(), n*50+(1<<15)*26; got > want {
		t.Errorf("%d bytes, %.1f a row, want at most %d", got, float64(got)/n, want)
	}
	for j.Len() > 0 {
		j.Forget(1)
	}
	j.index.Shrink()
	if got := j.Bytes(); got > 256*lineBytes*minLines {
		t.Errorf("%d bytes for no rows", got)
	}
}

// TestJoinedFilesStay: a file of the last checkpoint stays until the next one, a file of none goes with its block.
func TestJoinedFilesStay(t *testing.T) {
	o := JoinedOptions{Dir: t.TempDir(), Prefix: "s", BlockRows: 4}
	j := NewJoined(o)
	for i := range 12 {
		if err := j.Add(&ID{byte(i)}, int64(i), Key{"m", "1"}); err != nil {
			t.Fatal(err)
		}
	}
	j.AppendState(nil)
	files := j.Files()
	if len(files) != 3 {
		t.Fatalf("%d files", len(files))
	}
	for range 5 {
		j.Forget(1)
	}
	if _, err := os.Stat(files[0].Path); err != nil {
		t.Errorf("a file of the last checkpoint: %v", err)
	}
	j.AppendState(nil)
	if _, err := os.Stat(files[0].Path); err == nil || len(j.Files()) != 2 {
		t.Errorf("a file that no checkpoint needs is there still; %d files", len(j.Files()))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestJoinedRefusesDamage changes, one after the other, each byte of a state and of a file: an error or just the rows
// that the changed bytes say, no panic.
func TestJoinedRefusesDamage(t *testing.T) {
	o := JoinedOptions{Dir: t.TempDir(), Prefix: "s", BlockRows: 4}
	j := NewJoined(o)
	for i := range 6 {
		if err := j.Add(&ID{byte(i)}, int64(i), Key{"m", fmt.Sprint(i % 2)}); err != nil {
			t.Fatal(err)
		}
	}
	j.Forget(1)
	state := j.AppendState(nil)
	file, err := os.ReadFile(j.Files()[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	restore := func(state, file []byte) (*Joined, error) {
		out := NewJoined(o)
		defer out.Close()
		r := binenc.NewReader(state)
		err := out.Restore(&r, func(_, path string) error { return os.WriteFile(path, file, 0o644) })
		if err == nil {
			err = r.Close()
		}
		found := 0
		for i := range 6 {
			if err == nil {
				found += len(out.Find(&ID{byte(i)}))
			}
		}
		// a byte of an id in memory
		if otherID := found == 4 && out.Len() == 5; err == nil && found != out.Len() && !otherID {
			t.Errorf("%d rows are found of %d", found, out.Len())
		}
		return out, err
	}
	if got, err := restore(state, file); err != nil || got.Len() != 5 {
		t.Fatalf("%d rows, %v", got.Len(), err)
	}
	for i := range state {
		for _, bit := range []byte{1, 0x80} {
			bad := slices.Clone(state)
			bad[i] ^= bit
			if got, err := restore(bad, file); err == nil && !bytes.Equal(got.AppendState(nil), bad) {
				t.Errorf("byte %d: %d rows, which are another state", i, got.Len())
			}
		}
		if _, err := restore(state[:i], file); err == nil {
			t.Errorf("cut after %d bytes: no error", i)
		}
	}
	for i := range file {
		bad := slices.Clone(file)
		bad[i] ^= 1
		if _, err := restore(state, bad); err == nil {
			t.Errorf("byte %d of the file: no error", i)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestJoinedCrossesTheCounter lets row numbers pass 2³², of which the index keeps the rest.
func TestJoinedCrossesTheCounter(t *testing.T) {
	j := NewJoined(JoinedOptions{InMemory: true, BlockRows: 3})
	j.oldest = 1<<32 - 5
	j.next = j.oldest
	for i := range 10 {
		if err := j.Add(&ID{byte(i)}, int64(i), Key{"m", "1"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if got, want := j.Find(&ID{byte(i)}), []Met{{Key{"m", "1"}, int64(i)}}; !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: %v", i, got)
		}
	}
}

// BenchmarkJoined is one row added, one that is not there looked for, and one forgotten, of a million.
func BenchmarkJoined(b *testing.B) {
	j := NewJoined(JoinedOptions{Dir: b.TempDir(), Prefix: "s"})
	defer j.Close()
	id := func(i uint64) (id ID) {
		x := i * 0x9E3779B97F4A7C15
		for k := range 8 {
			id[k], id[8+k] = byte(x>>(8*k)), byte((x^x>>29)>>(8*k))
		}
		return id
	}
	next := uint64(0)
	add := func() {
		a := id(next)
		if err := j.Add(&a, int64(next), Key{"m", "1"}); err != nil {
			b.Fatal(err)
		}
		next++
	}
	for range 1_000_000 {
		add()
	}
	b.ReportAllocs()
	for b.Loop() {
		miss := id(next + 1<<40)
		if len(j.Find(&miss)) > 0 {
			b.Fatal("found")
		}
		add()
		j.Forget(1)
	}
}

// TestNumbersComeAgain: where the numbers of rows pass 2³¹, what is remembered is found, and what is forgotten is not.
func TestNumbersComeAgain(t *testing.T) {
	const most, rows = 100, 1000
	j := NewJoined(JoinedOptions{InMemory: true, BlockRows: 64})
	j.oldest = 1<<31 - rows/2
	j.next = j.oldest
	idOf := func(n int) ID { return ID{byte(n), byte(n >> 8), 15: 1} }
	for n := range rows {
		id := idOf(n)
		if err := j.Add(&id, int64(n), Key{"m", "1"}); err != nil {
			t.Fatal(err)
		}
		j.Forget(max(0, j.Len()-most))
		for back := range min(n+1, 2*most) {
			id := idOf(n - back)
			got := j.Find(&id)
			if back >= most && len(got) > 0 || back < most && (len(got) != 1 || got[0].TS != int64(n-back)) {
				t.Fatalf("row %d: of the row %d before it %v", n, back, got)
			}
		}
	}
}

// TestTablesArePurged: forgotten rows are out of all tables long before 2³⁰ more have been forgotten.
func TestTablesArePurged(t *testing.T) {
	const rows = 5000
	x := NewIndex()
	for n := range uint64(rows) {
		x.Add(x.Hash(&ID{byte(n), byte(n >> 8)}), refOf(n))
	}
	x.forget(rows, refOf(rows))
	if x.rows != rows || x.gone != rows {
		t.Fatalf("%d rows, %d gone, want %d", x.rows, x.gone, rows)
	}
	const more = len(x.tables) * purgeEach
	x.forget(more, refOf(rows+uint64(more)))
	if x.rows != 0 || x.gone != more || more > maxJoined/2 {
		t.Errorf("%d rows, %d gone after %d more", x.rows, x.gone, more)
	}
}
