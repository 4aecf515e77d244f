package seglog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/internal/durable"
)

// batch is one of n records with a payload; producer < 0 is one without.
func batch(n int, payload string, producer int64, seq int32) []byte {
	var records []byte
	for i := range n {
		r := kmsg.Record{OffsetDelta: int32(i), Key: []byte(payload), Value: []byte(payload)} //nolint:gosec // few
		body := r.AppendTo(nil)
		r.Length = int32(len(body) - 1) //nolint:gosec // short
		records = append(records, r.AppendTo(nil)...)
	}
	count := int32(n) //nolint:gosec // few
	b := kmsg.RecordBatch{Magic: 2, LastOffsetDelta: count - 1, ProducerID: producer, FirstSequence: seq,
		NumRecords: count, Records: records, MaxTimestamp: time.Now().UnixMilli()}
	raw := b.AppendTo(nil)
	Seal(raw)
	return raw
}

func open(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 1 << 20
	}
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func appendAll(t *testing.T, l *Log, batches ...[]byte) {
	t.Helper()
	for _, b := range batches {
		if err := Check(b); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
}

// offsets are those of the first records of all batches.
func offsets(t *testing.T, l *Log) []int64 {
	t.Helper()
	var out []int64
	at, end := l.Bounds()
	for at < end {
		b, err := l.Read(at, 200)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			h, err := parseHeader(b)
			if err == nil {
				err = whole(b[:h.size])
			}
			if err != nil {
				t.Fatal(err)
			}
			out, at, b = append(out, h.base), h.last+1, b[h.size:]
		}
	}
	return out
}

// TestNothingIsGivenOutBeforeItIsSynced: neither to the producer nor to readers; and after a sync that failed nothing
// is taken, because the system may have forgotten what it could not write.
func TestNothingIsGivenOutBeforeItIsSynced(t *testing.T) {
	syncing, let := make(chan bool), make(chan error)
	l := open(t, t.TempDir(), Options{syncFile: func(*os.File) error { syncing <- true; return <-let }})
	done := make(chan error)
	put := func() { go func() { _, err := l.Append(batch(3, "a", -1, 0)); done <- err }() }
	put()
	<-syncing
	if _, end := l.Bounds(); end != 0 {
		t.Errorf("end %d before the sync", end)
	}
	if b, err := l.Read(0, 1000); len(b) > 0 || err != nil {
		t.Errorf("%d bytes, %v before the sync", len(b), err)
	}
	more := l.Changed()
	let <- nil
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-more
	if got := offsets(t, l); !slices.Equal(got, []int64{0}) {
		t.Errorf("got %v", got)
	}
	put()
	<-syncing
	let <- errors.New("input/output error")
	if err := <-done; err == nil {
		t.Error("a batch that was not synced was acknowledged")
	}
	if _, err := l.Append(batch(1, "b", -1, 0)); err == nil {
		t.Error("a log goes on after a sync that failed")
	}
	if _, end := l.Bounds(); end != 3 {
		t.Errorf("end %d, want 3", end)
	}
}

// TestTornEnd: wherever the last batch is cut, the ones before it stay and the log goes on.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	appendAll(t, l, batch(2, "first", -1, 0), batch(1, "second", -1, 0))
	file := filepath.Join(dir, segmentName(0))
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := parseHeader(raw)
	for cut := first.size; cut <= int64(len(raw)); cut++ {
		other := t.TempDir()
		torn := slices.Clone(raw[:cut])
		if cut == int64(len(raw)) {
			torn[cut-1] ^= 1 // whole in length alone
		}
		if err := os.WriteFile(filepath.Join(other, segmentName(0)), torn, 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, other, Options{})
		appendAll(t, l, batch(1, "third", -1, 0))
		if got := offsets(t, l); !slices.Equal(got, []int64{0, 2}) {
			t.Fatalf("cut at %d: batches at %v", cut, got)
		}
	}
}

// TestDamagedMiddle: what was whole and is not any more is said, not cut.
func TestDamagedMiddle(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 100})
	appendAll(t, l, batch(1, "first", -1, 0), batch(1, "second", -1, 0))
	if err := os.Truncate(filepath.Join(dir, segmentName(0)), 70); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{SegmentBytes: 100, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a damaged segment was opened")
	}
}

// TestDamageBeforeWholeBatches: a flipped bit in the last segment, in whichever field, is no half-written end: the
// batches after it were acknowledged. Nothing is cut, and the error says where it is and what a person can do.
func TestDamageBeforeWholeBatches(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	appendAll(t, l, batch(1, "first", -1, 0), batch(1, "second", -1, 0), batch(1, "third", -1, 0))
	raw, err := os.ReadFile(filepath.Join(dir, segmentName(0)))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := parseHeader(raw)
	for name, flip := range map[string]struct {
		at  int64
		bit byte
	}{"offset": {7, 4}, "length": {atLength, 1}, "shorter": {atLength + 3, 8}, "version": {atMagic, 1},
		"checksum": {atCRC, 1}, "count": {atCount + 3, 2}, "record": {headerSize + 3, 1}} {
		dir := t.TempDir()
		path := filepath.Join(dir, segmentName(0))
		bad := slices.Clone(raw)
		bad[first.size+flip.at] ^= flip.bit
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, Options{SegmentBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
		if s := fmt.Sprint(err); !strings.Contains(s, path+": byte ") || !strings.Contains(s, "truncate -s ") {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || !slices.Equal(after, bad) {
			t.Errorf("%s: %d bytes are left of %d, %v", name, len(after), len(bad), err)
		}
	}
}

// TestEndOfZeros: a system that went down may have made the file longer and not written what is in it.
func TestEndOfZeros(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	appendAll(t, l, batch(2, "first", -1, 0))
	path := filepath.Join(dir, segmentName(0))
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()+1000)
	}
	if err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, Options{})
	appendAll(t, l, batch(1, "second", -1, 0))
	if got := offsets(t, l); !slices.Equal(got, []int64{0, 2}) {
		t.Errorf("batches at %v", got)
	}
}

// TestASegmentThatCannotBegin, as without a free file descriptor, refuses one batch and not all that come later.
func TestASegmentThatCannotBegin(t *testing.T) {
	full := errors.New("too many open files")
	var fail bool
	l := open(t, t.TempDir(), Options{SegmentBytes: 100, syncDir: func(dir string) error {
		if fail {
			return full
		}
		return durable.SyncDir(dir)
	}})
	appendAll(t, l, batch(1, "first", -1, 0))
	fail = true
	for range 2 {
		if _, err := l.Append(batch(1, "second", -1, 0)); !errors.Is(err, full) || errors.Is(err, os.ErrExist) {
			t.Errorf("without a descriptor: %v", err)
		}
	}
	fail = false
	appendAll(t, l, batch(1, "third", -1, 0))
	if got := offsets(t, l); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("batches at %v", got)
	}
}

// TestOffsetsNeverBeginAnew: not when everything was forgotten, and not after another start.
func TestOffsetsNeverBeginAnew(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 300})
	for i := range 20 {
		appendAll(t, l, batch(5, fmt.Sprint("value ", i), -1, 0))
	}
	if got := offsets(t, l); len(got) != 20 || got[19] != 95 {
		t.Fatalf("batches at %v", got)
	}
	if err := l.Retain(Retention{Bytes: 700}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if start, end := l.Bounds(); start == 0 || start > 90 || end != 100 {
		t.Errorf("%d to %d after retention by size", start, end)
	}
	if err := l.Retain(Retention{Age: time.Hour}, time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, Options{SegmentBytes: 300})
	if start, end := l.Bounds(); start != 100 || end != 100 {
		t.Errorf("%d to %d after everything was forgotten, want 100", start, end)
	}
	if _, err := l.Read(50, 100); !errors.Is(err, ErrRange) {
		t.Errorf("a record that was forgotten: %v", err)
	}
	if base, err := l.Append(batch(1, "next", -1, 0)); base != 100 || err != nil {
		t.Errorf("next offset %d, %v", base, err)
	}
}

// TestRepeatsOfProducers: a batch that is sent again, also after a restart, is written once; a gap is refused.
func TestRepeatsOfProducers(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	appendAll(t, l, batch(2, "a", 7, 0), batch(2, "b", 7, 2), batch(1, "other", 8, 0))
	for range 2 {
		if base, err := l.Append(batch(2, "b", 7, 2)); base != 2 || err != nil {
			t.Errorf("repeat: offset %d, %v", base, err)
		}
		if _, err := l.Append(batch(1, "d", 7, 9)); !errors.Is(err, ErrSequence) {
			t.Errorf("gap: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, dir, Options{})
	}
	if base, err := l.Append(batch(1, "c", 7, 4)); base != 5 || err != nil {
		t.Errorf("next: offset %d, %v", base, err)
	}
}

// firstKey is that of the first record of a batch.
func firstKey(b []byte) ([][]byte, error) {
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(b); err != nil {
		return nil, err
	}
	var r kmsg.Record
	err := r.ReadFrom(rb.Records)
	return [][]byte{r.Key}, err
}

// TestSyncOfASegmentThatIsLeftAndClosed: whoever is about to sync the last segment while another append leaves it, and
// it is compacted or forgotten, has lost nothing, and the log goes on.
func TestSyncOfASegmentThatIsLeftAndClosed(t *testing.T) {
	for name, clean := range map[string]func(*Log) error{
		"compacted": func(l *Log) error { return l.Compact(firstKey) },
		"forgotten": func(l *Log) error { return l.Retain(Retention{Bytes: 1}, time.Now()) },
	} {
		var calls atomic.Int32
		about, left, let := make(chan bool), make(chan bool), make(chan bool)
		l := open(t, t.TempDir(), Options{SegmentBytes: 100, syncFile: func(f *os.File) error {
			switch calls.Add(1) {
			case 1:
				about <- true
				<-let
			case 2:
				left <- true
			}
			return f.Sync()
		}})
		done := make(chan error)
		put := func() { _, err := l.Append(batch(1, "a", -1, 0)); done <- err }
		go put()
		<-about
		go put()
		<-left
		if err := clean(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		close(let)
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		appendAll(t, l, batch(1, "b", -1, 0))
		if got := offsets(t, l); !slices.Equal(got[len(got)-2:], []int64{1, 2}) {
			t.Errorf("%s: batches at %v", name, got)
		}
	}
}

// TestCompaction keeps the last record of every key at its offset.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 250})
	for i := range 30 {
		appendAll(t, l, batch(1, fmt.Sprint("key ", i%3), -1, 0))
	}
	appendAll(t, l, batch(1, "only once", -1, 0))
	if err := l.Compact(firstKey); err != nil {
		t.Fatal(err)
	}
	want := offsets(t, l)
	for _, at := range []int64{27, 28, 29, 30} {
		if !slices.Contains(want, at) {
			t.Errorf("offset %d is gone: %v", at, want)
		}
	}
	if len(want) > 6 {
		t.Errorf("%d batches are left", len(want))
	}
	if got := offsets(t, open(t, dir, Options{SegmentBytes: 250})); !slices.Equal(got, want) {
		t.Errorf("after a restart %v, before %v", got, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v, for its owner only", e.Name(), err, info.Mode())
		}
	}
	if at, err := l.At(0); err != nil || at != want[0] {
		t.Errorf("first at or after time 0: %d, %v", at, err)
	}
}
