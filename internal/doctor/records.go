package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/inputs/schemas"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// source is a topic of inputs.
type source struct {
	topic string
	kind  arrowio.Kind
	as    inputs.Config
	keyed bool // rows must lie in the partition of their id
	spare bool // inputs names other topics, so it may be empty
}

// sources are the topics that the configuration reads rows from. keyed: shards read those of Arrow themselves.
func sources(cfg *config.Config, keyed bool) []source {
	var out []source
	for _, kind := range []arrowio.Kind{arrowio.Predictions, arrowio.Labels} {
		own := cfg.Topics.Logits
		if kind == arrowio.Labels {
			own = cfg.Topics.Labels
		}
		for _, c := range inputs.WithRequests(cfg.Inputs) {
			if c.Kind() == kind {
				out = append(out, source{topic: c.Topic, kind: kind, as: c})
			}
		}
		arrow := inputs.Config{Format: "arrow"}
		named := slices.ContainsFunc(out, func(s source) bool { return s.topic == own })
		if !named && own != "" {
			spare := slices.ContainsFunc(out, func(s source) bool { return s.kind == kind })
			out = append(out, source{topic: own, kind: kind, as: arrow, keyed: keyed, spare: spare})
		}
	}
	return out
}

// place is where an id was seen.
type place struct {
	topic     string
	partition int
}

// row is a row with an id.
type row struct {
	place
	ts arrowio.Time
}

// look is what the latest records of an input say.
type look struct {
	source
	records, rows    int
	unread, rejected int            // records and rows that are refused
	refused          map[string]int // by reason
	example          string
	scored, sumToOne int // rows of logits; those that could be probabilities
	newest           arrowio.Time
	soonest, latest  time.Duration // from a row's ts to its record
	ids              map[arrowio.ID]row
	err              error
}

// inputs looks at the latest records of all inputs.
func (d *doctor) inputs(ctx context.Context) {
	var looks []*look
	for _, s := range sources(&d.Config, !d.split) {
		if d.topics[s.topic].Partitions == 0 {
			continue // said already
		}
		l := &look{source: s, refused: map[string]int{}, ids: map[arrowio.ID]row{}, soonest: math.MaxInt64,
			latest: math.MinInt64}
		l.err = d.read(ctx, l)
		looks = append(looks, l)
		d.format(l)
		d.scores(l)
		d.clock(l)
		d.zone(l)
	}
	d.meeting(looks)
}

// read decodes the last records of every partition.
func (d *doctor) read(ctx context.Context, l *look) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	o := inputs.Options{Slices: d.Config.Slices.Columns, MaxBytes: d.Config.Kafka.MessageMax}
	if l.as.Registered() {
		registry, err := schemas.New(d.Config.SchemaRegistry)
		if err != nil {
			return err
		}
		o.Schemas = registry
	}
	as, err := inputs.New(l.as, o)
	if err != nil {
		return err
	}
	arrow := arrowio.NewDecoder(arrowio.Options{Slices: d.Config.Slices.Columns,
		MaxMessageBytes: d.Config.Kafka.MessageMax})
	for p := range d.topics[l.topic].Partitions {
		latest := kafkaio.Latest{Topic: l.topic, Partition: p, Offsets: int64(d.Records)}
		take := func(r *pipeline.Record) { l.take(ctx, r, as, arrow) }
		if err := latest.Read(ctx, d.spec(), take); err != nil {
			return err
		}
	}
	return nil
}

// take decodes a record as a shard would.
func (l *look) take(ctx context.Context, r *pipeline.Record, as *inputs.Decoder, arrow *arrowio.Decoder) {
	l.newest = max(l.newest, r.Time)
	if len(r.Value) == 0 && slices.ContainsFunc(r.Headers, isControl) {
		return
	}
	l.records++
	in := &inputs.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}
	if err := as.Ready(ctx, in); err != nil {
		l.unread++
		l.refuse("no schema", r, err.Error())
		return
	}
	values, err := as.Decode(in)
	for i := 0; err == nil && i < len(values); i++ {
		var batches []*arrowio.Batch
		batches, err = arrow.Decode(values[i], arrowio.Origin{Time: r.Time}, l.kind)
		for _, b := range batches {
			l.rows += b.N
			l.ofBatch(b, r)
			b.Release()
		}
	}
	if err == nil {
		return
	}
	l.unread++
	reason, detail := "unreadable", err.Error()
	if de := new(arrowio.DecodeError); errors.As(err, &de) {
		reason, detail = de.Reason, de.Detail
	}
	l.refuse(reason, r, detail)
}

// ofBatch counts the rows that are rejected, and notes the ids of the others.
func (l *look) ofBatch(b *arrowio.Batch, r *pipeline.Record) {
	for i := range b.N {
		after := time.Duration(r.Time - b.TS[i])
		l.soonest, l.latest = min(l.soonest, after), max(l.latest, after)
		if !b.Probs && b.K > 1 && len(b.Scores) == b.N*b.K {
			l.scored++
			if arrowio.IsDistribution(b.Scores[i*b.K : (i+1)*b.K]) {
				l.sumToOne++
			}
		}
		switch {
		case b.Reject != nil && b.Reject[i] != "":
			l.refuse(b.Reject[i], r, fmt.Sprintf("row %d", i))
			l.rejected++
		case b.IDs != nil && len(l.ids) < mostIDs:
			l.ids[b.IDs[i]] = row{place{r.Topic, int(r.Partition)}, b.TS[i]}
		}
	}
}

// scores says where logits look like probabilities.
func (d *doctor) scores(l *look) {
	if l.scored > 0 && l.sumToOne == l.scored {
		d.say("scores", Warn, "send probabilities as probs: a softmax of them is far less sure than the model",
			"%s: all %d rows of logits are in [0, 1] and sum to 1", l.topic, l.scored)
	}
}

// mostIDs bounds the ids that are kept.
const mostIDs = 1 << 18

func isControl(h pipeline.Header) bool {
	return h.Key == pipeline.WatermarkHeader || h.Key == pipeline.SourceIdleHeader
}

func (l *look) refuse(reason string, r *pipeline.Record, detail string) {
	l.refused[reason]++
	if l.example == "" {
		l.example = fmt.Sprintf("%s/%d/%d (%s): %s", r.Topic, r.Partition, r.Offset, Kind(r.Value), detail)
	}
}

// Kind says what the bytes of a value look like.
func Kind(v []byte) string {
	text := strings.TrimLeft(string(v[:min(len(v), 64)]), " \t\r\n")
	switch {
	case len(v) == 0:
		return "empty"
	case strings.HasPrefix(text, "\xff\xff\xff\xff"):
		return "Arrow"
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return "JSON"
	case strings.HasPrefix(text, "<"):
		return "XML or HTML"
	case strings.HasPrefix(text, "\x00") && len(v) > 5:
		return "Avro, Protobuf or JSON behind the id of a schema registry"
	case strings.HasPrefix(text, "ARROW1"):
		return "an Arrow file; a message is a stream"
	case strings.HasPrefix(text, "PAR1"):
		return "Parquet"
	case strings.HasPrefix(text, "\x80"):
		return "a Python pickle"
	}
	return "first bytes " + fmt.Sprintf("% x", v[:min(len(v), 8)])
}

// format says whether the latest records can be read.
func (d *doctor) format(l *look) {
	what := "predictions"
	if l.kind == arrowio.Labels {
		what = "labels"
	}
	if l.err != nil {
		d.say("records", Unknown, "", "%s: %v", l.topic, l.err)
		return
	}
	if l.records == 0 && l.spare {
		d.say("records", OK, "", "%s: no %s, inputs names other topics", l.topic, what)
		return
	}
	if l.records == 0 {
		mend := "send some: plumbline produce -c FILE examples/data/monday.npz is a test"
		if slices.Contains(d.Config.InputTopics(), l.topic) {
			mend = "send some, in the format that inputs says"
		}
		d.say("records", Warn, mend, "%s: no %s yet", l.topic, what)
		return
	}
	if len(l.refused) == 0 {
		d.say("records", OK, "", "%s: the last %d records are %s, %d rows of %s", l.topic, l.records, l.as.Format,
			l.rows, what)
		return
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(l.refused)) {
		reasons = append(reasons, strconv.Itoa(l.refused[reason])+" "+reason)
	}
	s := Warn
	if 2*l.unread >= l.records || 2*l.rejected >= l.rows && l.rejected > 0 {
		s = Bad
	}
	do := "docs/schema.md, What is refused, says what each reason means"
	if l.as.Format == "arrow" && strings.Contains(l.example, "(JSON)") {
		do = "they are JSON: inputs: [{topic: " + l.topic + ", format: json}] reads them, in a group that never ran " +
			"(docs/schema.md, Inputs)"
	}
	var parts []string
	if l.unread > 0 {
		parts = append(parts, fmt.Sprintf("%s of the last %d records of %s cannot be read", share(l.unread, l.records),
			l.records, what))
	}
	if l.rejected > 0 {
		parts = append(parts, fmt.Sprintf("%s of %d rows of %s are refused", share(l.rejected, l.rows), l.rows, what))
	}
	d.say("records", s, do, "%s: %s: %s; first %s", l.topic, strings.Join(parts, ", "), strings.Join(reasons, ", "),
		l.example)
}

// share is how many of all, also in percent.
func share(n, of int) string { return fmt.Sprintf("%d (%.2g %%)", n, 100*float64(n)/float64(of)) }

// clock compares the newest record with this machine's clock.
func (d *doctor) clock(l *look) {
	if l.newest == 0 {
		return
	}
	const old, offset = 10 * time.Minute, 5 * time.Second
	age := time.Since(time.Unix(0, l.newest)).Round(time.Second)
	switch most := d.Config.EventTime.MaxAhead; {
	case age < -offset && (most == 0 || -age < most):
		d.say("clock", Warn, "set the clocks by NTP", "%s: the newest record is %s ahead of this machine", l.topic,
			-age)
	case age < -offset:
		d.say("clock", Bad, "set the clocks by NTP: rows that far ahead (event_time.max_ahead) are rejected",
			"%s: the newest record is %s ahead of this machine", l.topic, -age)
	case age > old:
		d.say("clock", Warn, "is the producer running?", "%s: the newest record is %s old", l.topic, age)
	default:
		d.say("clock", OK, "", "%s: the newest record is %s old", l.topic, max(age, 0))
	}
}

// zone says where all rows are off by what a time loses with its zone.
func (d *doctor) zone(l *look) {
	const step, most, near = 15 * time.Minute, 14 * time.Hour, 2 * time.Minute
	off := l.soonest.Round(step)
	if l.records < 2 || off == 0 || off.Abs() > most || (l.soonest-off).Abs() > near || (l.latest-off).Abs() > near {
		return
	}
	side := "before"
	if off < 0 {
		side = "after"
	}
	d.say("zone", Warn, "send ts in UTC or with its zone: a time without one is read as UTC; or is each batch of an "+
		"earlier hour, as of midnight?",
		"%s: in each of the last %d records ts is %s %s the record's time", l.topic, l.records, off.Abs(), side)
}

// meeting says whether predictions and labels of one id lie where they can meet.
func (d *doctor) meeting(looks []*look) {
	predictions := map[arrowio.ID]row{}
	labels := map[arrowio.ID]row{}
	keyed := true
	for _, l := range looks {
		keyed = keyed && l.keyed
		if l.kind == arrowio.Labels {
			maps.Copy(labels, l.ids)
		} else {
			maps.Copy(predictions, l.ids)
		}
	}
	if len(labels) == 0 || len(predictions) == 0 {
		return
	}
	both, apart, late := 0, 0, 0
	longest, wait := time.Duration(0), d.Config.Join.Wait
	for id, at := range labels {
		if p, ok := predictions[id]; ok {
			both++
			if p.partition != at.partition {
				apart++
			}
			after := time.Duration(at.ts - p.ts)
			if longest = max(longest, after); after > wait {
				late++
			}
		}
	}
	if 10*late >= both && late > 0 {
		d.say("delays", Bad, "set join.wait to the longest delay of labels",
			"%d of %d labels are of a time more than join.wait, %v, after their prediction's, up to %v: such meet none",
			late, both, wait, longest.Round(time.Second))
	}
	switch {
	case both == 0:
		d.say("keys", Warn, "are the ids the same text? \"7\" and 7 differ",
			"none of the last %d labels has the id of one of the last %d predictions", len(labels), len(predictions))
	case keyed && apart > 0:
		d.say("keys", Bad, "key each record by its id (one row a record), or read both topics by inputs, which take "+
			"any key (docs/schema.md, Inputs)", "%d ids are in both topics, %d of them in different partitions",
			both, apart)
	default:
		d.say("keys", OK, "", "%d of the last %d labels have their prediction among the last, where they meet", both,
			len(labels))
	}
}

// letters says what was refused last.
func (d *doctor) letters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := d.Config.Topics.DeadLetter
	if d.topics[name].Partitions == 0 {
		return
	}
	all, err := Letters(ctx, d.spec(), name, d.Records)
	if err != nil {
		d.say("dead letters", Unknown, "", "%v", err)
		return
	}
	const recent = time.Hour
	byReason := map[string]int{}
	for _, l := range all {
		if time.Since(l.Time) < recent {
			byReason[l.Reason]++
		}
	}
	if len(byReason) == 0 {
		d.say("dead letters", OK, "", "%s: none in the last hour", name)
		return
	}
	var reasons []string
	for _, r := range slices.Sorted(maps.Keys(byReason)) {
		reasons = append(reasons, strconv.Itoa(byReason[r])+" "+r)
	}
	last := all[len(all)-1]
	d.say("dead letters", Warn, "plumbline deadletters shows them", "%s, in the last hour: %s; last %s/%d/%d: %s", name,
		strings.Join(reasons, ", "), last.Topic, last.Partition, last.Offset, last.Detail)
}
