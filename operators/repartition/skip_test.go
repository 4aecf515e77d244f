package repartition_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestSkipOfARepeat: of a message of records 0 to 3 that is skipped, a shard has taken 0 and 1 before, in a message
// that the relay had not committed. A replay must leave out 2 and 3 only.
func TestSkipOfARepeat(t *testing.T) {
	got := ids{}
	s := newOneShard(got)
	var rs []pipeline.Record
	for i := range 4 {
		rs = append(rs, pipeline.Record{Input: pipeline.Logits, Topic: "z-json", Offset: int64(i), Time: 1e18,
			Value: fmt.Appendf(nil, `{"id":"%d","model":"a","logits":[1,2]}`, i)})
	}
	c := oneConverter(t, true, 1, nil)
	for _, r := range rs[:2] {
		s.take(t, c.Take(r))
	}
	s.take(t, c.Release())
	if len(got) != 2 {
		t.Fatalf("took %v", got)
	}
	c = oneConverter(t, true, 1, nil) // nothing was committed
	for _, r := range rs {
		s.take(t, c.Take(r))
	}
	for _, m := range c.Release() {
		r := pipeline.Record{Topic: "by-id", Value: m.Value, Headers: m.Headers, Time: m.Time, Offset: s.at}
		s.Skip(r, "poison")
	}
	for _, m := range s.Out.Drain() {
		var told struct {
			Record record.Skip `json:"record"`
		}
		if m.Stream == pipeline.StreamDecisions {
			var skip record.Skip
			if err := json.Unmarshal(m.Value, &told); err == nil && told.Record.Topic != "" {
				skip = told.Record
			} else if err := json.Unmarshal(m.Value, &skip); err != nil {
				t.Fatal(err)
			}
			if skip.Sources != "2-3" {
				t.Errorf("a replay leaves out records %q, want 2-3: 0 and 1 were taken", skip.Sources)
			}
		}
	}
}
