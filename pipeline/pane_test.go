package pipeline

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
)

var paneMessages = []*PaneMessage{
	{Of: 1, Seq: 1, Length: 1, Punctuation: true, Closed: math.MinInt64, Idle: true},
	{Shard: 3, Of: 4, Seq: math.MaxUint64, Length: 10e9, Punctuation: true, Closed: 1 << 40},
	{Shard: 1, Of: 2, Seq: 7, Length: 10e9, Model: "m", LabelPane: -5, Late: true, Cells: []Cell{
		{Version: "v", Slice: "a=b", K: 10, PredictionPane: -6, Set: []byte("set")}, {K: 2, Set: []byte{}}}},
	{Of: 1, Seq: 1, Length: 1, Cells: []Cell{}},
	{Of: 1, Epoch: math.MaxUint64, Seq: 1, Length: 1, Punctuation: true, Next: []int64{-1, 1 << 40},
		Loss: &record.Loss{Schema: 1, Task: "shards/0", Until: record.At(5), By: "ann", Why: "a volume"}},
}

func TestPaneRoundTrip(t *testing.T) {
	for _, m := range paneMessages {
		b := AppendPane(nil, m)
		got, err := DecodePane(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, %v, want %+v", got, err, m)
		}
		for i := range b {
			if _, err := DecodePane(b[:i]); !errors.Is(err, ErrPane) {
				t.Errorf("cut to %d of %d bytes: %v, want ErrPane", i, len(b), err)
			}
		}
		if _, err := DecodePane(append(bytes.Clone(b), 0)); !errors.Is(err, ErrPane) {
			t.Errorf("a byte too many: %v, want ErrPane", err)
		}
	}
}

func TestPaneRefused(t *testing.T) {
	good := PaneMessage{Shard: 0, Of: 2, Seq: 1, Length: 1, Punctuation: true}
	for name, change := range map[string]func(*PaneMessage){
		"shard past the last": func(m *PaneMessage) { m.Shard = 2 },
		"no shards":           func(m *PaneMessage) { m.Of = 0 },
		"seq 0":               func(m *PaneMessage) { m.Seq = 0 },
		"length 0":            func(m *PaneMessage) { m.Length = 0 },
		"length negative":     func(m *PaneMessage) { m.Length = -1 },
		"shard negative":      func(m *PaneMessage) { m.Shard = -1 },
		"of huge":             func(m *PaneMessage) { m.Of = math.MaxInt },
	} {
		m := good
		change(&m)
		if _, err := DecodePane(AppendPane(nil, &m)); !errors.Is(err, ErrPane) {
			t.Errorf("%s: %v, want ErrPane", name, err)
		}
	}
	for _, s := range []string{"", "PLBP", "PLBP\x02\x00\x00\x01\x01\x01\x00", "JSON\x01\x01"} {
		if _, err := DecodePane([]byte(s)); !errors.Is(err, ErrPane) {
			t.Errorf("%q: %v, want ErrPane", s, err)
		}
	}
}

func FuzzDecodePane(f *testing.F) {
	for _, m := range paneMessages {
		b := AppendPane(nil, m)
		f.Add(b)
		f.Add(b[:len(b)/2])
		b = bytes.Clone(b)
		b[len(b)-1] ^= 0x55
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodePane(b)
		if err != nil {
			if !errors.Is(err, ErrPane) {
				t.Fatalf("error %v is not ErrPane", err)
			}
			return
		}
		back, err := DecodePane(AppendPane(nil, m))
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v became %+v, %v", m, back, err)
		}
	})
}

func decodePending(t *testing.T, o *Outbox) map[int32][]*PaneMessage {
	t.Helper()
	out := map[int32][]*PaneMessage{}
	for _, m := range o.Pending() {
		p, err := DecodePane(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		out[m.Partition] = append(out[m.Partition], p)
	}
	return out
}

func TestOutbox(t *testing.T) {
	const partitions = 3
	o := NewOutbox(2, 5, 10, partitions)
	set := func(n int) []byte { return bytes.Repeat([]byte{7}, n) }
	third := maxIncrement / 3
	sent := []Cell{{Version: "a", K: 2, Set: set(third)}, {Version: "b", K: 2, Set: set(third)},
		{Version: "c", K: 2, Set: set(third)}, {Version: "d", K: 2, Set: set(10)},
		{Version: "e", K: 2, Set: set(3 * maxIncrement)}, {Version: "f", K: 2, Set: set(10)}}
	o.Increment("m", 4, false, sent)
	o.Punctuate(Punctuation{Closed: 5})
	o.Increment("m", 4, true, sent[:1])
	home := int32(murmur.PartitionOf([]byte("m"), partitions))
	by := decodePending(t, o)
	var cells []Cell
	for p := range int32(partitions) {
		want := 1
		if p == home {
			want = 6 // a b c | d | e alone | f, the punctuation, the late one
		}
		if len(by[p]) != want {
			t.Errorf("partition %d has %d messages, want %d", p, len(by[p]), want)
		}
		for i, m := range by[p] {
			if m.Seq != uint64(i+1) || m.Shard != 2 || m.Of != 5 || m.Length != 10 {
				t.Errorf("partition %d message %d: %+v", p, i, m)
			}
			size := 0
			for _, c := range m.Cells {
				size += len(c.Set)
			}
			if size > maxIncrement && len(m.Cells) > 1 {
				t.Errorf("%d cells of %d bytes in one message, at most %d", len(m.Cells), size, maxIncrement)
			}
			if !m.Punctuation && !m.Late {
				cells = append(cells, m.Cells...)
			}
		}
	}
	if !reflect.DeepEqual(cells, sent) {
		t.Errorf("%d cells arrived, want the %d sent, in order", len(cells), len(sent))
	}
	for _, m := range o.Pending() {
		p, _ := DecodePane(m.Value)
		if p.Punctuation && m.Key != nil || !p.Punctuation && string(m.Key) != "m" || m.Stream != StreamPanes {
			t.Errorf("message %+v has key %q on %s", p, m.Key, m.Stream)
		}
	}

	// The state carries messages and sequence numbers over.
	b, err := o.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	back := NewOutbox(2, 5, 10, partitions)
	if err := back.RestoreState(b); err != nil {
		t.Fatal(err)
	}
	if again, _ := back.AppendState(nil); !bytes.Equal(again, b) || len(back.Pending()) != len(o.Pending()) {
		t.Errorf("%d pending after restoring %d", len(back.Pending()), len(o.Pending()))
	}
	back.Clear()
	back.Punctuate(Punctuation{Closed: 6, Idle: true})
	for p, ms := range decodePending(t, back) {
		want := uint64(2)
		if p == home {
			want = 7
		}
		if len(ms) != 1 || ms[0].Seq != want || !ms[0].Idle {
			t.Errorf("partition %d goes on with %+v, want seq %d, idle", p, ms, want)
		}
	}
	if err := NewOutbox(2, 5, 10, 4).RestoreState(b); err == nil || !strings.Contains(err.Error(), "3 partitions") {
		t.Errorf("another number of partitions: %v", err)
	}
}
