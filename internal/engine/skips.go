package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// skips has the records that took no part live for reasons that are not in the records themselves: a replay must skip
// them, too.
type skips struct {
	why   map[attempts.Place]string // of records that ended their task
	early map[lane][]offsetRange    // records whose timestamps were in the future when they were read; in order
	parts map[part]*skippedPart     // of split topics: a replay makes them anew
	of    map[attempts.Place][]*skippedPart
	panes []record.Skip // of panes, which a replay does not read
}

// part identifies what the repartition stage made of a record for a shard.
type part struct {
	source string // as in the header
	shard  int32
}

// skippedPart is a part that ended its shard.
type skippedPart struct {
	record.Skip
	read   bool // the record that it is of
	obeyed bool
}

// lane is a partition of a topic.
type lane struct {
	topic     string
	partition int32
}

// offsetRange has both ends.
type offsetRange struct{ first, last int64 }

func newSkips() skips {
	return skips{why: map[attempts.Place]string{}, early: map[lane][]offsetRange{}, parts: map[part]*skippedPart{},
		of: map[attempts.Place][]*skippedPart{}}
}

// readSkips reads the decisions topic and ignores records that cannot be decoded.
func readSkips(ctx context.Context, cfg config.Config, spec kafkaio.TailSpec) (skips, error) {
	out := newSkips()
	topic := cfg.Topics.Decisions
	if topic == "" {
		return out, nil
	}
	err := kafkaio.ReadTopic(ctx, spec, topic, func(r *pipeline.Record) {
		var d record.Decision
		var s record.Skip
		if json.Unmarshal(r.Value, &d) == nil && d.Kind == record.DecisionSkip && json.Unmarshal(d.Record, &s) == nil {
			if s.Topic == cfg.Topics.Panes {
				out.panes = append(out.panes, s)
			}
			out.note(&s)
		}
	})
	if err != nil {
		err = kafkaclient.Explain(ctx, cfg.Kafka, fmt.Errorf("topics.decisions: %w", err))
	}
	for at := range out.early {
		out.early[at] = joined(out.early[at])
	}
	return out, err
}

func (s skips) note(of *record.Skip) {
	if of.Offsets == "" {
		s.notePart(of)
		s.why[attempts.Place{Topic: of.Topic, Partition: of.Partition, Offset: of.Offset}] = of.Why
		return
	}
	at := lane{of.Topic, of.Partition}
	s.early[at] = append(s.early[at], rangesIn(of.Offsets)...)
}

// rangesIn reads "7,9-12"; what is no range is left out.
func rangesIn(text string) (out []offsetRange) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, more := strings.Cut(part, "-")
		if !more {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 64)
		last, err2 := strconv.ParseInt(to, 10, 64)
		if err == nil && err2 == nil {
			out = append(out, offsetRange{first, last})
		}
	}
	return out
}

// notePart notes a skipped part of a record, by its source record.
func (s skips) notePart(of *record.Skip) {
	f := strings.Split(of.Source, "/")
	if len(f) != 5 {
		return
	}
	p, err := strconv.ParseInt(f[1], 10, 32)
	offset, err2 := strconv.ParseInt(f[3], 10, 64)
	if err != nil || err2 != nil {
		return
	}
	it := &skippedPart{Skip: *of}
	note := func(source string, offset int64) {
		if at := (part{source, of.Partition}); s.parts[at] == nil {
			place := attempts.Place{Topic: f[0], Partition: int32(p), Offset: offset}
			s.parts[at], s.of[place] = it, append(s.of[place], it)
		}
	}
	if of.Sources == "" {
		note(of.Source, offset)
		return
	}
	left := maxSources
	for _, r := range rangesIn(of.Sources) { // a replay makes each of them alone
		for o := r.first; o <= r.last && left > 0; o++ {
			f[3], f[4] = strconv.FormatInt(o, 10), "0"
			note(strings.Join(f, "/"), o)
			left--
		}
	}
}

// maxSources is how many records a message is made of at most: who may write to the topic could name any number.
const maxSources = 1000

// reads notes that a record of a split topic was read; source is the repartition stage's name for its partition.
func (s skips) reads(source string, r *pipeline.Record) {
	for _, p := range s.of[attempts.Place{Topic: source, Partition: r.Partition, Offset: r.Offset}] {
		p.read = true
	}
}

// skipsPart reports whether the live run skipped a part that the replay makes again for one of so many shards, and
// why.
func (s skips) skipsPart(r *pipeline.Record, shards int) (why string, ok bool) {
	for _, h := range r.Headers {
		if h.Key != pipeline.SourceHeader {
			continue
		}
		if p := s.parts[part{string(h.Value), r.Partition}]; p != nil && p.Shards == shards {
			p.obeyed = true
			return p.Why, true
		}
	}
	return "", false
}

// unequal returns the skips of the live run that the replay could not repeat.
func (s skips) unequal(shards int) (out []string) {
	said := map[*skippedPart]bool{}
	for _, p := range s.parts {
		if p.read && !p.obeyed && !said[p] {
			said[p] = true
			out = append(out, fmt.Sprintf("%s partition %d offset %d was skipped: a part of %s for one of %d shards, "+
				"and there are %d now", p.Topic, p.Partition, p.Offset, p.Source, p.Shards, shards))
		}
	}
	for _, p := range s.panes {
		out = append(out, fmt.Sprintf("%s partition %d offset %d was skipped by a model task: what it said counts here",
			p.Topic, p.Partition, p.Offset))
	}
	slices.Sort(out)
	return out
}

// joined sorts ranges and merges those that touch or overlap: a task that restarted has reported some twice.
func joined(rs []offsetRange) []offsetRange {
	slices.SortFunc(rs, func(a, b offsetRange) int { return cmp.Compare(a.first, b.first) })
	out := rs[:0]
	for _, r := range rs {
		if n := len(out); n > 0 && r.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, r.last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// poison tells whether a record was skipped because it had ended its task, and why.
func (s skips) poison(r *pipeline.Record) (why string, ok bool) {
	if r.Idle || r.Paused {
		return "", false
	}
	why, ok = s.why[attempts.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}]
	return why, ok
}

// ahead tells whether a record's timestamp was in the future when it was read live.
func (s skips) ahead(r *pipeline.Record) bool {
	rs := s.early[lane{r.Topic, r.Partition}]
	i, ok := slices.BinarySearchFunc(rs, r.Offset, func(a offsetRange, o int64) int { return cmp.Compare(a.first, o) })
	return ok || i > 0 && r.Offset <= rs[i-1].last
}
