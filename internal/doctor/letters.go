package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Letter is a dead letter: a message that was refused, or rows of it.
type Letter struct {
	Time      time.Time `json:"time"` // of the refusal, by the broker
	Reason    string    `json:"reason"`
	Detail    string    `json:"detail,omitempty"`
	Topic     string    `json:"topic"` // where the message was that a producer sent
	Partition int       `json:"partition"`
	Offset    int64     `json:"offset"`
	Part      string    `json:"part,omitempty"` // of it that was refused, made by the repartition stage: its place
	Rows      string    `json:"rows,omitempty"` // those refused; "" = all
	Bytes     int       `json:"value_bytes"`
	Looks     string    `json:"looks_like"`
	Head      string    `json:"head,omitempty"` // the first bytes, as text where they are text
}

// letterOf reads a record of the dead-letter topic.
func letterOf(r *pipeline.Record) Letter {
	l := Letter{Time: time.Unix(0, r.Time).UTC(), Bytes: len(r.Value), Looks: Kind(r.Value), Head: head(r.Value)}
	number := func(v []byte) int64 {
		n, _ := strconv.ParseInt(string(v), 10, 64)
		return n
	}
	for _, h := range r.Headers {
		switch strings.TrimPrefix(h.Key, "plumbline-") {
		case "reason":
			l.Reason = string(h.Value)
		case "detail":
			l.Detail = string(h.Value)
		case "topic":
			l.Topic = string(h.Value)
		case "partition":
			l.Partition = int(number(h.Value))
		case "offset":
			l.Offset = number(h.Value)
		case "rows":
			l.Rows = string(h.Value)
		case "value-bytes":
			l.Bytes = int(number(h.Value))
		}
	}
	if len(r.Value) == 0 && l.Bytes > 0 { // a flood, or records whose content is hidden
		l.Looks = "not quoted in the dead letter"
	}
	if topic, partition, offset, ok := pipeline.SourceOf(r.Headers); ok {
		l.Part = fmt.Sprintf("%s/%d/%d", l.Topic, l.Partition, l.Offset)
		l.Topic, l.Partition, l.Offset = topic, int(partition), offset
	}
	if said := strings.TrimSuffix(l.Detail, l.Reason); said != l.Detail && meanings[l.Reason] != "" {
		l.Detail = said + meanings[l.Reason]
	}
	return l
}

// meanings are those of reasons that letters have no details of.
var meanings = map[string]string{
	arrowio.NullRow: "a null id, time, score or model, or an empty id or model",
	arrowio.NonfiniteScores: "a score is NaN or infinite, or probabilities are outside of 0 to 1, or " +
		"their sum is far from 1",
	arrowio.LabelRange: "a label is none of the classes, which count from 0",
	arrowio.BadWeight:  "a weight is not finite, not positive or above 2^20",
	arrowio.BadServed:  "a served confidence is outside of 0 to 1",
	arrowio.TimeRange:  "a time is outside of the years 1682 to 2257",
}

// head is the start of a value for people: text, or nothing where it is none. Who prints it escapes it.
func head(v []byte) string {
	const most = 160
	cut := v[:min(len(v), most)]
	text := strings.ToValidUTF8(string(cut), "")
	if len(v) == 0 || len(text) < len(cut)-3 || strings.ContainsRune(text, 0) {
		return ""
	}
	if len(v) > most {
		text += "…"
	}
	return text
}

// Letters are the last n dead letters of every partition, by time.
func Letters(ctx context.Context, spec kafkaio.TailSpec, topic string, n int) ([]Letter, error) {
	var out []Letter
	partitions, err := kafkaio.Partitions(ctx, spec.Client, topic)
	if err != nil {
		return nil, err
	}
	for p := range partitions {
		latest := kafkaio.Latest{Topic: topic, Partition: p, Offsets: int64(n)}
		take := func(r *pipeline.Record) { out = append(out, letterOf(r)) }
		if err := latest.Read(ctx, spec, take); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b Letter) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// Follow hands over dead letters as they are written, until ctx is done. One at a time.
func Follow(ctx context.Context, spec kafkaio.TailSpec, topic string, show func(Letter) error) error {
	partitions, err := kafkaio.Partitions(ctx, spec.Client, topic)
	if err != nil {
		return err
	}
	letters := make(chan Letter)
	g, ctx := errgroup.WithContext(ctx)
	for p := range partitions {
		_, next, err := kafkaio.Bounds(ctx, spec.Client, topic, p)
		if err != nil {
			return err
		}
		g.Go(func() error { return follow(ctx, spec, place{topic, p}, next, letters) })
	}
	g.Go(func() error {
		for {
			select {
			case l := <-letters:
				if err := show(l); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return g.Wait()
}

func follow(ctx context.Context, spec kafkaio.TailSpec, at place, next int64, to chan<- Letter) error {
	log := kafkaio.NewLog(spec, at.topic, at.partition, kafkaio.Range{Next: next})
	defer log.Close()
	for {
		r, err := log.Next(ctx)
		if err != nil {
			return err
		}
		if r.Idle {
			continue
		}
		select {
		case to <- letterOf(&r):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
