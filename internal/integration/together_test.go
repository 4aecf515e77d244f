//go:build integration

package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

const (
	togetherRows  = 20_000
	togetherWrong = 500 // every so manieth label is there before with a class that the model does not have
	togetherKills = 4
	togetherK     = 10
)

// togetherRow is a prediction with its label.
type togetherRow struct {
	id     string
	ts, at int64 // of the prediction and of the label
	scores []float32
	label  int32
}

func togetherStream(t *testing.T) []togetherRow {
	t.Helper()
	data := loadRows(t, "c10_chenyaofo19_logits.npz", "resnet20", togetherK)
	rows := make([]togetherRow, togetherRows)
	for i := range rows {
		j := i % data.N
		ts := start.UnixNano() + int64(i)*10*int64(time.Millisecond)
		rows[i] = togetherRow{"id-" + strconv.Itoa(i), ts, ts + int64(i*7919%3000)*10*int64(time.Millisecond),
			data.Scores[j*togetherK : (j+1)*togetherK], data.Label[j]}
	}
	return rows
}

// keyedMessages are rows as messages of 100 for the partitions of keyed topics.
func keyedMessages(t *testing.T, s settings, rows []togetherRow) (out []kafka.Message) {
	t.Helper()
	byTime := slices.Clone(rows)
	sort.SliceStable(byTime, func(i, j int) bool { return byTime[i].at < byTime[j].at })
	for topic, rows := range map[string][]togetherRow{"logits": rows, "labels": byTime} {
		parts := make([]arrowio.Columns, partitions)
		flush := func(p int) {
			c := parts[p]
			if len(c.IDs) == 0 {
				return
			}
			encode := arrowio.EncodePredictions
			if topic == "labels" {
				encode = arrowio.EncodeLabelRows
			}
			value, err := encode(c)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, kafka.Message{Topic: s.topic(topic), Partition: p, Value: value,
				Time: time.Unix(0, c.TS[len(c.TS)-1])})
			parts[p] = arrowio.Columns{}
		}
		for _, r := range rows {
			p := murmur.PartitionOf([]byte(r.id), partitions)
			c := &parts[p]
			c.IDs = append(c.IDs, r.id)
			if topic == "labels" {
				c.Label, c.TS = append(c.Label, r.label), append(c.TS, r.at)
			} else {
				c.Model, c.Version, c.K = "m", "1", togetherK
				c.Logits, c.TS = append(c.Logits, r.scores...), append(c.TS, r.ts)
			}
			if len(c.IDs) == 100 {
				flush(p)
			}
		}
		for p := range parts {
			flush(p)
		}
	}
	return append(out, endsOfAll(s.topic("logits"), s.topic("labels"), rows)...)
}

// endsOfAll are control records behind all rows.
func endsOfAll(logits, labels string, rows []togetherRow) (out []kafka.Message) {
	end := rows[len(rows)-1].ts + int64(2*time.Minute)
	for _, topic := range []string{logits, labels} {
		for p := range partitions {
			out = append(out, kafka.Message{Topic: topic, Partition: p, Value: []byte{}, Time: time.Unix(0, end),
				Headers: []kafka.Header{{Key: pipeline.WatermarkHeader, Value: strconv.AppendInt(nil, end, 10)}}})
		}
	}
	return out
}

// jsonMessages are rows as records of one to three, in any partition, as they happen. Some labels come with a class
// that there is not, too, in a record of their own.
func jsonMessages(logits, labels string, rows []togetherRow) (out []kafka.Message) {
	byTime := slices.Clone(rows)
	sort.SliceStable(byTime, func(i, j int) bool { return byTime[i].at < byTime[j].at })
	add := func(topic string, i int, at int64, text string) {
		if last := len(out) - 1; last >= 0 && out[last].Topic == topic && i%7 > 4 {
			out[last].Value = append(out[last].Value, text...)
			out[last].Time = time.Unix(0, at)
			return
		}
		out = append(out, kafka.Message{Topic: topic, Partition: i % partitions, Time: time.Unix(0, at),
			Value: []byte(text)})
	}
	for i, r := range rows {
		var scores []string
		for _, z := range r.scores {
			scores = append(scores, strconv.FormatFloat(float64(z), 'g', -1, 32))
		}
		add(logits, i, r.ts, fmt.Sprintf(`{"id":%q,"ts":%d,"model":"m","version":"1","logits":[%s]}`, r.id, r.ts,
			strings.Join(scores, ",")))
	}
	for i, r := range byTime {
		if i%togetherWrong == 0 {
			add(labels, 0, r.at, fmt.Sprintf(`{"id":%q,"ts":%d,"label":99}`, r.id, r.at))
			add(labels, 0, r.at, fmt.Sprintf(`{"id":%q,"ts":%d,"label":%d}`, r.id, r.at, r.label))
			continue
		}
		add(labels, i, r.at, fmt.Sprintf(`{"id":%q,"ts":%d,"label":%d}`, r.id, r.at, r.label))
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Time.Before(out[j].Time) })
	return append(out, endsOfAll(logits, labels, rows)...)
}

// TestTogether sends rows once in Arrow, and once in JSON with few rows a record, which go on together. The process is
// killed -9 several times, and then what it has committed is lost, so that it makes all messages again: state and
// counts are the same, and a dead letter names the record that it is about.
func TestTogether(t *testing.T) {
	t.Parallel()
	rows := togetherStream(t)
	keyed := configure(t, oneDay)
	kafkatest.Write(t, brokers, keyedMessages(t, keyed, rows)...)
	p := run(t, keyed)
	p.drain(togetherRows, togetherRows)
	want := p.hashOf("m")
	p.stop()

	prefix := topicPrefix(t)
	logits, labels := prefix+".json-logits", prefix+".json-labels"
	kafkatest.CreateTopics(t, brokers, partitions, logits, labels)
	s := configureEdited(t, oneDay+fmt.Sprintf("inputs:\n- {topic: %s, format: json}\n"+
		"- {topic: %s, format: json, rows: labels}\n", logits, labels), "keyed: true", "keyed: false")
	kafkatest.Write(t, brokers, endsOfAll(s.topic("logits"), s.topic("labels"), rows)...) // nobody else's rows come
	all := jsonMessages(logits, labels, rows)
	write := func(n int) {
		n = min(n, len(all))
		kafkatest.Write(t, brokers, all[:n]...)
		all = all[n:]
	}
	byID := []string{fmt.Sprintf("%s.%s-by-id-%d", s.prefix, s.topic("logits"), partitions),
		fmt.Sprintf("%s.%s-by-id-%d", s.prefix, s.topic("labels"), partitions)}
	written := func() int64 { return ends(t, byID[0], partitions) + ends(t, byID[1], partitions) }
	for range togetherKills {
		p, before := run(t, s), written()
		p.wait(time.Minute, "write", func() bool {
			write(400)
			return written() > before+20
		})
		p.kill()
	}
	write(len(all))
	p = run(t, s)
	p.drain(togetherRows, togetherRows)
	p.stop()
	before := written()
	if before > togetherRows/2 {
		t.Errorf("%d messages by id of %d records", before, 2*togetherRows)
	}
	forgetOffsets(t, inputGroups(t, s, logits, labels))
	p = run(t, s)
	p.wait(time.Minute, "write everything again", func() bool { return written() >= before+before/2 })
	st := p.drain(togetherRows, togetherRows)
	if got := p.hashOf("m"); got != want || want == "" {
		t.Errorf("state hash %s, of the rows in Arrow %s", got, want)
	}
	c := st.Counts
	if c.Predictions != togetherRows || c.Labelled != togetherRows || c.Late+c.Duplicates != 0 ||
		c.Rejected["label_range"] != togetherRows/togetherWrong || sum(c.Rejected) != c.Rejected["label_range"] {
		t.Errorf("counts %+v", c)
	}
	if sum(c.Repeats) < before/4 {
		t.Errorf("%v repeats of %d messages: everything was read again", c.Repeats, before)
	}
	t.Logf("%d messages by id of %d records, %v repeats", before, 2*togetherRows, c.Repeats)
	p.stop()
	if got := replayed(t, s, binary)["m"]; got != want {
		t.Errorf("a replay has the state hash %s, want %s", got, want)
	}
	compareLetters(t, s, labels)
}

// inputGroups are the groups of topics of inputs: they are named after the topics' ids.
func inputGroups(t *testing.T, s settings, topics ...string) map[string]string {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	res, err := client.ListGroups(context.Background(), &kafka.ListGroupsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]string{}
	for _, g := range res.Groups {
		for _, topic := range topics {
			if strings.HasPrefix(g.GroupID, s.prefix+"-input-"+topic+"@") {
				groups[g.GroupID] = topic
			}
		}
	}
	if len(groups) != len(topics) {
		t.Fatalf("groups %v of topics %v", groups, topics)
	}
	return groups
}

// compareLetters compares what dead letters name with where the labels are that are none. Those that came before their
// predictions are refused with these, as many as met in one message: it depends on which relay is ahead.
func compareLetters(t *testing.T, s settings, labels string) {
	t.Helper()
	want := map[string]bool{}
	for _, m := range kafkatest.ReadAll(t, brokers, labels) {
		if strings.HasSuffix(string(m.Value), `"label":99}`) {
			want[fmt.Sprintf("%d/%d", m.Partition, m.Offset)] = true
		}
	}
	named, early := map[string]bool{}, 0
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		headers := map[string]string{}
		for _, h := range m.Headers {
			headers[h.Key] = string(h.Value)
		}
		source := strings.Split(headers[pipeline.SourceHeader], "/")
		if strings.Contains(headers["plumbline-detail"], "an earlier label") {
			early++
			continue
		}
		for offset := range strings.SplitSeq(cmp.Or(headers["plumbline-source-offsets"], source[3]), ",") {
			named[source[1]+"/"+offset] = true
			if !want[source[1]+"/"+offset] || headers["plumbline-source-offsets"] != "" &&
				!strings.HasPrefix(headers["plumbline-source-offsets"], source[3]) {
				t.Errorf("a dead letter names offset %s of partition %s: %v", offset, source[1], headers)
			}
		}
	}
	if len(want) != togetherRows/togetherWrong || len(named)+early == 0 {
		t.Errorf("%d labels that are none, %d are named, %d came before predictions", len(want), len(named), early)
	}
}
