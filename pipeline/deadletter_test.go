package pipeline

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// said is what a dead letter says, by header.
func said(m *Message) map[string]string {
	out := map[string]string{}
	for _, h := range m.Headers {
		out[h.Key] = string(h.Value)
	}
	return out
}

// TestHiddenDeadLetter: where ids are hashed, nothing in a dead letter is a byte of the record's but names of headers.
func TestHiddenDeadLetter(t *testing.T) {
	o := NewOut(NewCounts())
	o.Hide(func(key []byte) []byte { return []byte(strings.ToUpper(string(key))) })
	r := Record{Topic: "logits", Offset: 7, Time: 9, Key: []byte("alice"), Value: []byte("alice, bob"),
		Headers: []Header{{"trace", []byte("alice")}}}
	o.Begin(r)
	o.Refuse("truncated", "10 bytes")
	o.End()
	m := o.Drain()[0]
	text := fmt.Sprintf("%s %s %s", m.Key, m.Value, m.Headers)
	if string(m.Key) != "ALICE" || strings.Contains(text, "alice") || strings.Contains(text, "bob") ||
		said(&m)["plumbline-value-bytes"] != "10" || said(&m)["plumbline-reason"] != "truncated" {
		t.Errorf("dead letter %s", text)
	}
}

// TestOneDeadLetterARecord: whatever the stages say of a record, and of however many batches of it, it becomes one dead
// letter, with the rows counted through all of them.
func TestOneDeadLetterARecord(t *testing.T) {
	counts := NewCounts()
	o := NewOut(counts)
	for _, c := range []struct {
		name                       string
		say                        func()
		reason, detail, rows, n, m string
	}{
		{"whole", func() { o.Refuse("truncated", "10 bytes") }, "truncated", "10 bytes", "", "", ""},
		{"one row", func() { o.NextBatch(3); o.Reject(1, "classes", "") }, "classes", "1 rows: classes", "1", "1", ""},
		{"batches", func() {
			o.NextBatch(70)
			o.NextBatch(70)
			o.Reject(1, "b", "x")
			o.Reject(0, "b", "y")
			o.NextBatch(2)
			o.Reject(1, "a", "")
		}, "rows", "1 rows: a, 2 rows: b (x)", "70-71,141", "3", ""},
		{"a row twice, and one of an earlier record", func() {
			o.NextBatch(10)
			o.Reject(4, "label_range", "label 7")
			o.Reject(4, "label_range", "label 7")
			o.Reject(-1, "label_range", "an earlier label")
		}, "label_range", "3 rows: label_range (label 7)", "4", "1", ""},
		{"all", func() {
			o.NextBatch(128)
			for i := range 128 {
				o.Reject(i, "a", "")
			}
		}, "a", "128 rows: a", "0-127", "128", ""},
		{"many ranges", func() {
			o.NextBatch(1000)
			for i := range 500 {
				o.Reject(2*i, "a", "")
			}
		}, "a", "500 rows: a", evens(64), "500", "436"},
	} {
		o.Begin(Record{Topic: "logits", Partition: 2, Offset: 7, Time: 99, Value: []byte("value")})
		c.say()
		o.End()
		ms := o.Drain()
		if len(ms) != 1 {
			t.Errorf("%s: %d dead letters, want 1", c.name, len(ms))
			continue
		}
		h := said(&ms[0])
		for name, want := range map[string]string{"reason": c.reason, "detail": c.detail, "rows": c.rows,
			"rows-count": c.n, "rows-more": c.m, "topic": "logits", "partition": "2", "offset": "7", "timestamp": "99",
			"value-bytes": "5", "value-sha256": fmt.Sprintf("%x", sha256.Sum256([]byte("value")))} {
			if got := h["plumbline-"+name]; got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got, want)
			}
		}
	}
	o.Begin(Record{Value: []byte("good")})
	o.NextBatch(3)
	o.End()
	if ms := o.Drain(); len(ms) != 0 {
		t.Errorf("a dead letter of a good record: %v", ms)
	}
	if n := counts.All()["dead_letters:a"]; n != 2 {
		t.Errorf("%d dead letters counted for reason a, want 2", n)
	}
}

func evens(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(2*i))
	}
	return strings.Join(out, ",")
}

// TestDeadLettersAreSmall: a dead letter has a bound, whatever the record was.
func TestDeadLettersAreSmall(t *testing.T) {
	big := []byte(strings.Repeat("ü", 4<<20))
	r := Record{Topic: "logits", Offset: 1, Key: big, Value: big}
	for i := range 1000 {
		r.Headers = append(r.Headers, Header{fmt.Sprintf("%d-%s", i, big[:1<<10]), big[:40<<10]})
	}
	r.Headers = append(r.Headers, Header{"plumbline-reason", []byte("a lie")}, Header{WatermarkHeader, []byte("x")})
	for _, quoted := range []int{0, 100, DefaultQuoted} {
		o := NewOut(NewCounts()).Quote(quoted, nil)
		o.Begin(r)
		o.Refuse("too_large", string(big))
		o.End()
		m := o.Drain()[0]
		if got := m.Size(); got > quoted+16<<10 || len(m.Value) != quoted {
			t.Errorf("a dead letter of %d bytes, its value of %d; want %d of the value, and 16 KiB at most", got,
				len(m.Value), quoted)
		}
		h := said(&m)
		if h["plumbline-value-bytes"] != fmt.Sprint(len(big)) || h["plumbline-key-bytes"] != fmt.Sprint(len(big)) ||
			h["plumbline-headers"] == "" || h[WatermarkHeader] != "x" || h["plumbline-reason"] != "too_large" {
			t.Errorf("headers %.200q", h)
		}
	}
	o := NewOut(NewCounts())
	o.Begin(Record{Value: []byte("v"), Headers: []Header{{"plumbline-rows", []byte("a lie")}, {"h", []byte("v")}}})
	o.Refuse("not_arrow", "")
	o.End()
	m := o.Drain()[0]
	if h := said(&m); h["plumbline-rows"] != "" || h["original-plumbline-rows"] != "a lie" || h["h"] != "v" {
		t.Errorf("headers %q", h)
	}
}

// TestFloodOfDeadLetters: in a minute a task writes so many bytes of dead letters and no more; the others are counted,
// and the next minute has room again.
func TestFloodOfDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := NewCounts()
		o := NewOut(counts)
		value := make([]byte, 70<<10)
		flood := func(n int) (written, quoting, bytes int) {
			for range n {
				o.Begin(Record{Topic: "logits", Value: value})
				o.Refuse("not_arrow", "")
				o.End()
			}
			for _, m := range o.Drain() {
				written++
				bytes += m.Size()
				if len(m.Value) > 0 {
					quoting++
				}
			}
			return written, quoting, bytes
		}
		for range 2 {
			written, quoting, bytes := flood(9_000)
			if bytes > maxLettersMinute+maxLettersMinute/100 || quoting == 0 || written < 2000 || quoting > 100 {
				t.Errorf("%d letters written, %d of them with a value, %d bytes", written, quoting, bytes)
			}
			time.Sleep(time.Minute)
		}
		n := counts.All()
		if n["dead_letters:not_arrow"] != 18_000 || n["dead_letters_skipped:not_arrow"] < 1000 {
			t.Errorf("counts %v", n)
		}
	})
}

// TestAheadOffsets: the records of two topics whose timestamps were ahead are told in few entries, by ranges.
func TestAheadOffsets(t *testing.T) {
	o := NewOut(NewCounts())
	for i := range int64(3 * maxAheadRuns) {
		o.Ahead(&Record{Topic: "logits", Partition: 3, Offset: 10 + i, Time: 5e9})
		if i%2 == 0 {
			o.Ahead(&Record{Topic: "labels", Partition: 3, Offset: i, Time: 5e9})
		}
	}
	o.TellAhead()
	o.TellAhead()
	var logits, labels []string
	for _, m := range o.Drain() {
		s, err := record.Decode[record.Skip](m.Value)
		if err != nil || m.Stream != StreamDecisions || s.Partition != 3 || len(m.Value) > 50_000 ||
			!strings.HasPrefix(s.Offsets, strconv.FormatInt(s.Offset, 10)) {
			t.Errorf("%s: %+v, %v", m.Stream, s, err)
			continue
		}
		if s.Topic == "logits" {
			logits = append(logits, s.Offsets)
		} else {
			labels = append(labels, strings.Split(s.Offsets, ",")...)
		}
	}
	if len(labels) != 3*maxAheadRuns/2 || labels[0] != "0" || labels[2] != "4" {
		t.Errorf("%d records of labels, the first %v", len(labels), labels[:min(3, len(labels))])
	}
	if len(logits) > 3 || !strings.HasPrefix(logits[0], "10-") {
		t.Errorf("ranges of logits: %v", logits)
	}
}
