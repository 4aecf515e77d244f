package repartition_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

func newConverter(in pipeline.Input, targets int, max int) (*repartition.Converter, *pipeline.Counts) {
	counts := pipeline.NewCounts()
	return repartition.New(repartition.Config{Input: in, Topic: "z-unkeyed", Partition: 1, Of: 3, Targets: targets,
		Keyed: true, Decode: arrowio.Options{MaxMessageBytes: max}}, -1, pipeline.NewOut(counts), counts), counts
}

// TestRepartitionPlacesRows: every row goes to the partition of its id, integers by their eight bytes, with its
// features, and twice the same record makes twice the same messages.
func TestRepartitionPlacesRows(t *testing.T) {
	const n, targets = 200, 5
	c := arrowio.Columns{Model: "m", Version: "2", K: 2, D: 1, Slices: []arrowio.StringColumn{{Name: "region"}}}
	want := map[arrowio.ID]int{}
	for i := range n {
		id := fmt.Sprint("id-", i)
		c.IDs, c.Logits, c.Features = append(c.IDs, id), append(c.Logits, float32(i), 1), append(c.Features, float32(i))
		c.Slices[0].Values = append(c.Slices[0].Values, fmt.Sprint("r", i%3))
		want[arrowio.HashID(id)] = murmur.PartitionOf([]byte(id), targets)
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	r := pipeline.Record{Input: pipeline.Logits, Topic: "z-unkeyed", Partition: 1, Offset: 77, Time: 5e9, Value: value,
		Headers: []pipeline.Header{{Key: "trace", Value: []byte("x")}, {Key: pipeline.SourceHeader,
			Value: []byte("of another")}}}
	p, counts := newConverter(pipeline.Logits, targets, 0)
	ms := p.Take(r)
	again, _ := newConverter(pipeline.Logits, targets, 0)
	repeat := again.Take(r)
	rows := 0
	for i, m := range ms {
		if m.Stream != pipeline.StreamLogits || m.Time != r.Time || len(m.Headers) != 2 ||
			m.Headers[0].Key != "trace" ||
			string(m.Headers[1].Value) != "z-unkeyed/1/3/77/0" || m.Headers[1].Key != pipeline.SourceHeader {
			t.Errorf("message %+v", m.Headers)
		}
		if !bytes.Equal(m.Value, repeat[i].Value) || m.Partition != repeat[i].Partition {
			t.Errorf("message %d is another the second time", i)
		}
		bs, err := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}}).Decode(m.Value,
			arrowio.Origin{Time: 1}, arrowio.Predictions)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bs {
			for j := range b.N {
				k := int(b.Scores[2*j])
				if want[b.IDs[j]] != int(m.Partition) || b.TS[j] != r.Time || int(b.Features[j]) != k ||
					b.Slices[0].Values[b.Slices[0].Index[j]] != fmt.Sprint("r", k%3) ||
					b.Models[0] != (arrowio.ModelKey{Model: "m", Version: "2"}) {
					t.Fatalf("row %d of partition %d: id's partition is %d; %+v", k, m.Partition, want[b.IDs[j]], b)
				}
				rows++
			}
		}
	}
	if rows != n || counts.All()["repartitioned_rows:logits"] != n ||
		counts.All()["repartitioned_messages:logits"] != 1 {
		t.Errorf("%d rows, counts %v", rows, counts.All())
	}
}

func TestRepartitionOfBadMessages(t *testing.T) {
	p, counts := newConverter(pipeline.Labels, 4, 0)
	ms := p.Take(pipeline.Record{Input: pipeline.Labels, Topic: "y", Offset: 3, Value: []byte("nothing of ours"),
		Key: []byte("k")})
	if len(ms) != 1 || ms[0].Stream != pipeline.StreamDeadLetter || string(ms[0].Value) != "nothing of ours" ||
		string(ms[0].Headers[0].Value) != "not_arrow" {
		t.Errorf("got %+v", ms)
	}
	if counts.All()["dead_letters:not_arrow"] != 1 {
		t.Errorf("counts %v", counts.All())
	}
	// One without ids is one row's worth of places.
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", K: 2, Logits: []float32{1, 2, 3, 4},
		Label: []int32{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ = newConverter(pipeline.Logits, 4, 0)
	ms = p.Take(pipeline.Record{Partition: 1, Offset: 5, Value: value, Time: 1})
	if len(ms) != 1 || ms[0].Partition != 2 {
		t.Errorf("rows without ids: %d messages, %+v", len(ms), ms)
	}
}

// TestRepartitionOfNothing: records of inputs that have no rows, such as tombstones, are counted, and those whose rows
// were all taken before are none of them.
func TestRepartitionOfNothing(t *testing.T) {
	d, err := inputs.New(inputs.Config{Format: "json", Model: "m"}, inputs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counts := pipeline.NewCounts()
	taken := &pipeline.Fence{Filters: []pipeline.Filter{{Keyed: true, Taken: []pipeline.Mark{{Offset: 2}}}}}
	p := repartition.New(repartition.Config{Input: pipeline.Logits, Topic: "z", Of: 1, Targets: 2, Keyed: true,
		Fence: taken, Translate: func(r *pipeline.Record) ([][]byte, error) {
			return d.Decode(&inputs.Record{Value: r.Value})
		}}, -1, pipeline.NewOut(counts), counts)
	for i, value := range []string{`{"id":"a","prob":0.5}`, "", "[]", " \n", `{"id":"b","prob":0.5}`} {
		ms := p.Take(pipeline.Record{Input: pipeline.Logits, Offset: int64(i), Value: []byte(value), Time: 1})
		if want := i / 4; len(ms) != want {
			t.Errorf("%q: %d messages, want %d", value, len(ms), want)
		}
	}
	want := map[string]int64{"repartition_empty:logits": 3, "repartitioned_messages:logits": 5,
		"repartitioned_rows:logits": 1}
	for name, n := range want {
		if got := counts.All()[name]; got != n {
			t.Errorf("%s is %d, want %d; %v", name, got, n, counts.All())
		}
	}
}

// TestRepartitionParts: where a part would be longer than may be there are more, numbered by partition.
func TestRepartitionParts(t *testing.T) {
	var ids []string
	for i := range 400 {
		ids = append(ids, fmt.Sprint("a rather long name of a prediction ", i))
	}
	value, err := arrowio.EncodeLabels("m", "1", ids, nil, make([]int32, len(ids)))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newConverter(pipeline.Labels, 1, len(value))
	ms := p.Take(pipeline.Record{Input: pipeline.Labels, Offset: 1, Value: value, Time: 1})
	if len(ms) < 2 {
		t.Fatalf("%d messages, want some", len(ms))
	}
	for i, m := range ms {
		if want := fmt.Sprintf("z-unkeyed/1/3/1/%d", i); string(m.Headers[0].Value) != want ||
			len(m.Value) > len(value) {
			t.Errorf("message %d: %s with %d bytes, want %s with at most %d", i, m.Headers[0].Value, len(m.Value),
				want, len(value))
		}
	}
}

// TestRepartitionControl: what is said of a source goes to every partition, and idleness is taken back at the end.
func TestRepartitionControl(t *testing.T) {
	const targets = 3
	p, _ := newConverter(pipeline.Logits, targets, 0)
	check := func(what string, ms []pipeline.Message, key, value string, offset int) {
		t.Helper()
		if len(ms) != targets {
			t.Fatalf("%s: %d messages, want %d", what, len(ms), targets)
		}
		for i, m := range ms {
			got := map[string]string{}
			for _, h := range m.Headers {
				got[h.Key] = string(h.Value)
			}
			if int(m.Partition) != i || len(m.Value) != 0 || got[key] != value ||
				got[pipeline.SourceHeader] != fmt.Sprintf("z-unkeyed/1/3/%d/0", offset) {
				t.Errorf("%s: message %d %+v", what, i, m)
			}
		}
	}
	check("control", p.Take(pipeline.Record{Offset: 8, Value: []byte{},
		Headers: []pipeline.Header{{Key: pipeline.WatermarkHeader, Value: []byte("17")}}}),
		pipeline.WatermarkHeader, "17", 8)
	check("opening, whoever was there before", p.Opening(), pipeline.SourceIdleHeader, "0", 9)
	if ms := p.Closing(); ms != nil {
		t.Errorf("at the end of one that is not idle: %v", ms)
	}
	check("idle", p.Take(pipeline.Record{Idle: true}), pipeline.SourceIdleHeader, "1", 9)
	check("closing", p.Closing(), pipeline.SourceIdleHeader, "0", 9)
	if ms := p.Closing(); ms != nil {
		t.Errorf("the second time: %v", ms)
	}
}

// TestRepartitionNeverOverflows: the place of rows without ids follows from offsets of any size.
func TestRepartitionNeverOverflows(t *testing.T) {
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", K: 2, Logits: []float32{1, 2},
		Label: []int32{0}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newConverter(pipeline.Logits, 7, 0)
	if ms := p.Take(pipeline.Record{Partition: 3, Offset: math.MaxInt64 - 4, Value: value, Time: 1}); len(ms) != 1 ||
		ms[0].Partition < 0 || ms[0].Partition > 6 {
		t.Errorf("got %+v", ms)
	}
}

// TestPartsHaveFewHeaders: each part has a copy of the headers, so that they are bounded.
func TestPartsHaveFewHeaders(t *testing.T) {
	const n = 64
	c := arrowio.Columns{Model: "m", Version: "2", K: 2}
	for i := range n {
		c.IDs, c.Logits = append(c.IDs, fmt.Sprint("id-", i)), append(c.Logits, float32(i), 1)
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	r := pipeline.Record{Topic: "z-unkeyed", Partition: 1, Offset: 5, Value: value}
	for i := range 100 {
		r.Headers = append(r.Headers, pipeline.Header{Key: fmt.Sprint("h", i), Value: make([]byte, 40<<10)})
	}
	p, _ := newConverter(pipeline.Logits, 16, 0)
	for _, m := range p.Take(r) {
		if size := m.Size() - len(m.Value); size > 16<<10 {
			t.Errorf("a part has %d bytes of headers", size)
		}
	}
}

// TestRepartitionLeavesOutWhatWasTaken: after a change of the number of shards the rows that come are those that the
// shards before had not taken, whatever each had of a message in several parts, and whatever the shards before them.
func TestRepartitionLeavesOutWhatWasTaken(t *testing.T) {
	var ids []string
	for i := range 600 {
		ids = append(ids, fmt.Sprint("a rather long name of a prediction ", i))
	}
	value, err := arrowio.EncodeLabels("m", "1", ids, nil, make([]int32, len(ids)))
	if err != nil {
		t.Fatal(err)
	}
	r := pipeline.Record{Input: pipeline.Labels, Offset: 7, Value: value, Time: 1}
	split := func(targets int, keyed bool, fence *pipeline.Fence) []pipeline.Message {
		counts := pipeline.NewCounts()
		return repartition.New(repartition.Config{Input: pipeline.Labels, Topic: "y", Of: 1, Targets: targets,
			Keyed: keyed, Fence: fence, Decode: arrowio.Options{MaxMessageBytes: len(value) / 5}}, 7,
			pipeline.NewOut(counts), counts).Take(r)
	}
	seen := map[arrowio.ID]int{}
	note := func(m pipeline.Message) {
		bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(m.Value, arrowio.Origin{Time: 1}, arrowio.Labels)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range bs[0].IDs {
			seen[id]++
		}
	}
	// take lets each shard have some parts of what it is sent: none, the first, or all.
	take := func(ms []pipeline.Message, shards int) (f pipeline.Filter) {
		for range shards {
			f.Taken = append(f.Taken, pipeline.Mark{Offset: 6})
		}
		parts := map[int32]int32{}
		for _, m := range ms {
			p := m.Partition
			if part := parts[p]; part < p%3 {
				note(m)
				f.Taken[p] = pipeline.Mark{Offset: 7, Part: part}
			}
			parts[p]++
		}
		return f
	}
	first := take(split(2, true, nil), 2)
	first.Keyed = true
	second := take(split(3, false, &pipeline.Fence{Filters: []pipeline.Filter{first}}), 3)
	for _, m := range split(5, false, &pipeline.Fence{Filters: []pipeline.Filter{second, first}}) {
		note(m)
	}
	for _, id := range ids {
		if n := seen[arrowio.HashID(id)]; n != 1 {
			t.Fatalf("%s came %d times", id, n)
		}
	}
}

// TestAheadIsSaidToShards: the parts of a record whose timestamp was in the future say so, and no other record can.
func TestAheadIsSaidToShards(t *testing.T) {
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", Version: "2", K: 2, IDs: []string{"a"},
		Logits: []float32{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newConverter(pipeline.Logits, 3, 0)
	forged := []pipeline.Header{{Key: pipeline.SourceAheadHeader, Value: []byte("1")}}
	for offset, ahead := range []bool{true, false} {
		ms := p.Take(pipeline.Record{Input: pipeline.Logits, Topic: "z-unkeyed", Partition: 1, Offset: int64(offset),
			Time: 5e9, Value: value, Headers: forged, Ahead: ahead})
		said := 0
		for _, h := range ms[0].Headers {
			if h.Key == pipeline.SourceAheadHeader {
				said++
			}
		}
		if len(ms) != 1 || said == 1 != ahead || said > 1 {
			t.Errorf("ahead %t: %d messages, %s", ahead, len(ms), ms[0].Headers)
		}
	}
	told := p.Gather()
	if len(told) != 1 || !bytes.Contains(told[0].Value, []byte(`"offsets":"0"`)) || len(p.Gather()) != 0 {
		t.Errorf("told %d: %v", len(told), told)
	}
}
