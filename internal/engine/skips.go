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

// skips are what of the topics took no part live for reasons that are not in the records: a replay skips it, too.
type skips struct {
	why   map[attempts.Place]string // of records that ended their task
	early map[lane][]offsetRange    // records whose timestamps were in the future when they were read; in order
}

// lane is a partition of a topic.
type lane struct {
	topic     string
	partition int32
}

// offsetRange has both ends.
type offsetRange struct{ first, last int64 }

// readSkips reads the decisions topic. A record that cannot be read is none.
func readSkips(ctx context.Context, cfg config.Config, spec kafkaio.TailSpec) (skips, error) {
	out := skips{map[attempts.Place]string{}, map[lane][]offsetRange{}}
	topic := cfg.Topics.Decisions
	if topic == "" {
		return out, nil
	}
	err := kafkaio.ReadTopic(ctx, spec, topic, func(r *pipeline.Record) {
		var d record.Decision
		var s record.Skip
		if json.Unmarshal(r.Value, &d) == nil && d.Kind == record.DecisionSkip && json.Unmarshal(d.Record, &s) == nil {
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
		s.why[attempts.Place{Topic: of.Topic, Partition: of.Partition, Offset: of.Offset}] = of.Why
		return
	}
	at := lane{of.Topic, of.Partition}
	for part := range strings.SplitSeq(of.Offsets, ",") {
		from, to, more := strings.Cut(part, "-")
		if !more {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 64)
		last, err2 := strconv.ParseInt(to, 10, 64)
		if err == nil && err2 == nil {
			s.early[at] = append(s.early[at], offsetRange{first, last})
		}
	}
}

// joined sorts ranges and joins those that meet: a task that began anew has told some again.
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
