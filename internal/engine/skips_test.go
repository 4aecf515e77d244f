package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestSkipsOfAReplay: what the decisions topic says of records, in any order and more than once.
func TestSkipsOfAReplay(t *testing.T) {
	s := newSkips()
	for _, skip := range []record.Skip{
		{Topic: "logits", Partition: 1, Offset: 5, Why: "it ends its task"},
		{Topic: "logits", Partition: 1, Offset: 20, Offsets: "20-29,40,x-9,7-"},
		{Topic: "logits", Partition: 1, Offset: 10, Offsets: "10,12-22"},
		{Topic: "logits", Partition: 2, Offset: 11, Offsets: "11"},
	} {
		s.note(&skip)
	}
	for at := range s.early {
		s.early[at] = joined(s.early[at])
	}
	if got := s.early[lane{"logits", 1}]; len(got) != 3 {
		t.Errorf("ranges %v, want 10, 12 to 29, and 40", got)
	}
	for offset := range int64(50) {
		r := &pipeline.Record{Topic: "logits", Partition: 1, Offset: offset}
		if got, want := s.ahead(r), offset == 10 || offset >= 12 && offset < 30 || offset == 40; got != want {
			t.Errorf("offset %d: ahead %t", offset, got)
		}
		if why, ok := s.poison(r); ok != (offset == 5) || ok && why != "it ends its task" {
			t.Errorf("offset %d: skipped %t, %q", offset, ok, why)
		}
	}
	if s.ahead(&pipeline.Record{Topic: "labels", Partition: 1, Offset: 12}) {
		t.Error("a record of another topic is ahead")
	}
}

// TestSkippedTogether: of a message of several records that ended its shard, a replay leaves out what it makes of each.
func TestSkippedTogether(t *testing.T) {
	s := newSkips()
	out := pipeline.NewOut(pipeline.NewCounts())
	source := pipeline.Provenance{Topic: "rows@07", Partition: 2, Of: 4, Offset: 33}
	out.Skipped(pipeline.Record{Topic: "by-id", Partition: 3, Offset: 9, Headers: []pipeline.Header{source.AsHeader(),
		pipeline.SourceRows([]int64{30, 30, 33, 31})}}, 4, "it ends its task")
	for _, m := range out.Drain() {
		var told record.Skip
		if m.Stream == pipeline.StreamDecisions && json.Unmarshal(m.Value, &told) == nil {
			s.note(&told)
		}
	}
	for offset := range int64(40) {
		source.Offset = offset
		_, got := s.skipsPart(&pipeline.Record{Topic: "by id", Partition: 3,
			Headers: []pipeline.Header{source.AsHeader()}}, 4)
		if want := offset == 30 || offset == 31 || offset == 33; got != want {
			t.Errorf("record %d: skipped %v, want %v", offset, got, want)
		}
		s.reads("rows@07", &pipeline.Record{Topic: "rows", Partition: 2, Offset: offset})
	}
	if got := s.unequal(4); len(got) != 0 {
		t.Errorf("not equal: %q", got)
	}
}

// TestSkippedParts: a part of a split topic that ended its shard is left out where a replay makes it anew. What a
// replay cannot leave out it names.
func TestSkippedParts(t *testing.T) {
	source := pipeline.Provenance{Topic: "rows@07", Partition: 2, Of: 4, Offset: 30, Part: 1}
	s := newSkips()
	var told record.Skip
	out := pipeline.NewOut(pipeline.NewCounts())
	bad := pipeline.Record{Topic: "by-id", Partition: 3, Offset: 9, Headers: []pipeline.Header{source.AsHeader()}}
	out.Skipped(bad, 4, "it ends its task")
	for _, m := range out.Drain() {
		if m.Stream == pipeline.StreamDecisions {
			if err := json.Unmarshal(m.Value, &told); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.note(&told)
	s.panes = append(s.panes, record.Skip{Topic: "panes", Partition: 1, Offset: 8})
	other := source
	other.Part = 0
	made := func(p pipeline.Provenance, shard int32) *pipeline.Record {
		return &pipeline.Record{Topic: "by id", Partition: shard, Headers: []pipeline.Header{p.AsHeader()}}
	}
	s.reads("rows@07", &pipeline.Record{Topic: "rows", Partition: 2, Offset: 30})
	for what, r := range map[string]*pipeline.Record{"another part": made(other, 3), "another shard's": made(source, 2),
		"another record": {Topic: "by id", Partition: 3}} {
		if _, ok := s.skipsPart(r, 4); ok {
			t.Errorf("%s is skipped", what)
		}
	}
	const want = "by-id partition 3 offset 9 was skipped: a part of rows@07/2/4/30/1 for one of 4 shards, and " +
		"there are 12 now"
	if _, ok := s.skipsPart(made(source, 3), 12); ok || len(s.unequal(12)) != 2 ||
		!strings.Contains(s.unequal(12)[0], want) {
		t.Errorf("with more shards: skipped %v, %q", ok, s.unequal(12))
	}
	if why, ok := s.skipsPart(made(source, 3), 4); !ok || why != "it ends its task" {
		t.Errorf("skipped %v, %q", ok, why)
	}
	if got := s.unequal(4); len(got) != 1 || !strings.Contains(got[0], "panes partition 1 offset 8") {
		t.Errorf("not equal: %q", got)
	}
}

// TestManySkipsOfASender: a few short records of somebody who may write to the decisions topic take no more memory
// than they have a right to: a message is made of at most 1,000 records.
func TestManySkipsOfASender(t *testing.T) {
	s := newSkips()
	for i := range 100 {
		of := record.Skip{Topic: "by-id", Source: "rows@07/2/4/9/0", Shards: 4,
			Sources: fmt.Sprintf("%d-%d", i*100_000, i*100_000+99_999)}
		s.note(&of)
	}
	if n := len(s.parts); n > 100_000 {
		t.Errorf("%d entries of 100 short records", n)
	}
}
