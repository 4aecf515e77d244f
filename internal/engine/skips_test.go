package engine

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestSkipsOfAReplay: what the decisions topic says of records, in any order and more than once.
func TestSkipsOfAReplay(t *testing.T) {
	s := skips{map[attempts.Place]string{}, map[lane][]offsetRange{}}
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
