package repartition_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// translated are records in JSON.
type translated struct{ d *inputs.Decoder }

func inputRecord(r *pipeline.Record) *inputs.Record {
	return &inputs.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}
}

func (t translated) Start(r *pipeline.Record) (int, bool) { return t.d.Start(inputRecord(r)) }
func (t translated) Add(r *pipeline.Record) (int, bool)   { return t.d.Add(inputRecord(r)) }
func (t translated) Message() ([]byte, []int, error)      { return t.d.Together() }

const togetherTargets = 3

func jsonConverter(t *testing.T, together bool, next int64) *repartition.Converter {
	t.Helper()
	return converterOf(t, together, next, repartition.Config{Partition: 1, Of: 2, Targets: togetherTargets})
}

// converterOf reads records in JSON.
func converterOf(t *testing.T, together bool, next int64, cfg repartition.Config) *repartition.Converter {
	t.Helper()
	d, err := inputs.New(inputs.Config{Format: "json"}, inputs.Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	counts := pipeline.NewCounts()
	cfg.Input, cfg.Topic, cfg.Decode = pipeline.Logits, "z-json", arrowio.Options{MaxMessageBytes: 1 << 20}
	cfg.Translate = func(r *pipeline.Record) ([][]byte, error) { return d.Decode(inputRecord(r)) }
	if together {
		cfg.Together = translated{d}
	}
	return repartition.New(cfg, next, pipeline.NewOut(counts), counts)
}

// jsonRecords are records of few rows, some of which go alone.
func jsonRecords(r *rand.Rand, n int) []pipeline.Record {
	records := make([]pipeline.Record, n)
	at := int64(1e18)
	for i := range records {
		at += r.Int64N(20e6)
		records[i] = pipeline.Record{Input: pipeline.Logits, Topic: "z-json", Partition: 1, Offset: 7 + int64(i),
			Time: at}
		row := fmt.Sprintf(`{"id":"id-%d","model":"m","logits":[%d,2]}`, i, r.IntN(9))
		switch r.IntN(60) {
		case 0:
			row = row[1:] // refused
		case 1:
			row += row
		case 2, 21, 22, 23, 24, 25, 26:
			row = strings.Replace(row, ",2]", ",2,3]", 1)
		case 3:
			records[i].Alone = true
		case 4:
			records[i].Ahead = true
		case 5:
			records[i].Headers = []pipeline.Header{{Key: pipeline.WatermarkHeader, Value: []byte("5")}}
			row = ""
		case 6:
			records[i].Unread = &pipeline.Unread{Reason: "x"}
		case 7:
			row = strings.Replace(row, `"model":"m",`, "", 1) // refused
		case 8:
			at += 2e9
		case 19, 20:
			row = "[]"
		case 9, 10, 11, 12, 13, 14, 15, 16, 17, 18:
			for j := range r.IntN(4) {
				row += strings.Replace(row, fmt.Sprintf("id-%d", i), fmt.Sprintf("id-%d-%d", i, j), 1)
			}
		}
		records[i].Value = []byte(row)
	}
	return records
}

// rowsOf are the rows of a message, with the record of each and where they went.
func rowsOf(t *testing.T, m *pipeline.Message) (rows []string) {
	t.Helper()
	if m.Stream != pipeline.StreamLogits || len(m.Value) == 0 {
		return []string{fmt.Sprintf("%s %d %q", m.Stream, m.Partition, m.Headers)}
	}
	var offsets []int64
	var source string
	for _, h := range m.Headers {
		switch h.Key {
		case pipeline.SourceHeader:
			source = strings.Split(string(h.Value), "/")[3]
		case pipeline.SourceRowsHeader:
			last := int64(0)
			for text := range strings.SplitSeq(string(h.Value), ",") {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				last += n
				offsets = append(offsets, last)
			}
		}
	}
	bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(m.Value, arrowio.Origin{Time: 1}, arrowio.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bs {
		for i := range b.N {
			offset := source
			if offsets != nil {
				offset, offsets = strconv.FormatInt(offsets[0], 10), offsets[1:]
			}
			rows = append(rows, fmt.Sprint(m.Partition, offset, b.IDs[i], b.TS[i], b.Scores[i*b.K:(i+1)*b.K]))
		}
	}
	return rows
}

// TestTogether: records that go together become the rows, at the places, that each becomes alone, and
// their messages say which record each row was.
func TestTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	alone, together := jsonConverter(t, false, 7), jsonConverter(t, true, 7)
	var want, got [togetherTargets][]string
	parts, others := [2]int{}, [2][]string{}
	add := func(which int, rows *[togetherTargets][]string, ms []pipeline.Message) {
		for i := range ms {
			if ms[i].Stream != pipeline.StreamLogits {
				others[which] = append(others[which], fmt.Sprint(rowsOf(t, &ms[i])))
				continue
			}
			p := ms[i].Partition
			rows[p] = append(rows[p], rowsOf(t, &ms[i])...)
			parts[which]++
		}
	}
	for _, record := range jsonRecords(r, 5000) {
		add(0, &want, alone.Take(record))
		add(1, &got, together.Take(record))
		if r.IntN(20) == 0 {
			add(1, &got, together.Release())
		}
	}
	add(1, &got, together.Take(pipeline.Record{Input: pipeline.Logits, Idle: true}))
	add(0, &want, alone.Take(pipeline.Record{Input: pipeline.Logits, Idle: true}))
	for p := range want {
		slices.Sort(want[p]) // rows of one number of scores lie together
		slices.Sort(got[p])
		if !slices.Equal(got[p], want[p]) {
			for i := range min(len(got[p]), len(want[p])) {
				if got[p][i] != want[p][i] {
					t.Fatalf("place %d, row %d: %s, alone %s", p, i, got[p][i], want[p][i])
				}
			}
			t.Fatalf("place %d: %d rows, alone %d", p, len(got[p]), len(want[p]))
		}
	}
	if !slices.Equal(others[0], others[1]) {
		t.Errorf("dead letters: %d, alone %d", len(others[1]), len(others[0]))
	}
	if parts[1] > parts[0]/2 {
		t.Errorf("%d messages, alone %d", parts[1], parts[0])
	}
}

// TestStopped: who stops with messages that are not written takes back that the source is idle, which shards still
// believe.
func TestStopped(t *testing.T) {
	for _, together := range []bool{false, true} {
		c := jsonConverter(t, together, 7)
		c.Take(pipeline.Record{Input: pipeline.Logits, Idle: true})
		c.Take(pipeline.Record{Input: pipeline.Logits, Topic: "z-json", Partition: 1, Offset: 7, Time: 1,
			Value: []byte(`{"id":"a","model":"m","logits":[1,2]}`)})
		c.Release()
		ms := c.Closing()
		for _, m := range ms {
			if h := m.Headers[len(m.Headers)-1]; h.Key != pipeline.SourceIdleHeader || string(h.Value) != "0" {
				t.Errorf("%q", m.Headers)
			}
		}
		if len(ms) != togetherTargets {
			t.Errorf("%d messages to %d shards", len(ms), togetherTargets)
		}
	}
}

// ids is a stage that counts the ids of rows.
type ids map[arrowio.ID]int

func (s ids) Process(_ context.Context, b *arrowio.Batch, _ pipeline.Emit) (pipeline.Rejects, error) {
	for _, id := range b.IDs {
		s[id]++
	}
	return b.Reject, nil
}
func (ids) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }
func (ids) State() pipeline.State                                       { return nil }

// TestTogetherAfterOthers: what one reader has written and not committed, and the next one puts together otherwise, as
// another build does, or where a record is no longer in the future, reaches shards once.
func TestTogetherAfterOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	records := jsonRecords(r, 200)
	later := slices.Clone(records) // by another clock
	for i := range later {
		later[i].Ahead = r.IntN(30) == 0
	}
	all := ids{}
	for stop := range records {
		for _, together := range [][2]bool{{false, true}, {true, false}, {true, true}} {
			got := ids{}
			shards := make([]*pipeline.Shard, togetherTargets)
			for p := range shards {
				counts := pipeline.NewCounts()
				shards[p] = pipeline.NewShard(pipeline.ShardSpec{ID: p, Inputs: 1, PaneLength: 1e9,
					Watermark: pipeline.NewWatermark(1, 1e9), Decoder: arrowio.NewDecoder(arrowio.Options{}),
					Stages: []pipeline.Stage{{Name: "ids", Operator: got}},
					Host: pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts,
						Outbox: pipeline.NewOutbox(p, togetherTargets, 1e9, 1), Log: slog.New(slog.DiscardHandler)}})
			}
			offsets := make([]int64, togetherTargets)
			read := func(c *repartition.Converter, records []pipeline.Record) {
				for _, record := range records {
					ms := c.Take(record)
					if r.IntN(20) == 0 {
						ms = append(ms, c.Release()...)
					}
					for _, m := range ms {
						if m.Stream != pipeline.StreamLogits {
							continue
						}
						one := pipeline.Record{Topic: "by-id", Partition: m.Partition, Offset: offsets[m.Partition],
							Value: m.Value, Headers: m.Headers, Time: m.Time}
						offsets[m.Partition]++
						if err := shards[m.Partition].Take(t.Context(), one); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			read(jsonConverter(t, together[0], 7), records[:stop])
			read(jsonConverter(t, together[1], 7), append(later, pipeline.Record{Input: pipeline.Logits, Idle: true}))
			if stop == 0 && len(all) == 0 {
				all = got
			}
			for id, n := range got {
				if n != all[id] {
					t.Fatalf("stopped before record %d, together %v: a row came %d times", stop, together, n)
				}
			}
			if len(got) != len(all) {
				t.Fatalf("stopped before record %d, together %v: %d rows, want %d", stop, together, len(got), len(all))
			}
		}
	}
}

// TestTogetherTraces: a record that the tracer follows goes alone, with its trace; other traces, which are not sampled
// or too many, hinder none, and that of the last record goes on. Records without rows hinder none either.
func TestTogetherTraces(t *testing.T) {
	c := jsonConverter(t, true, 0)
	var got []string
	for i := range int64(9) {
		value := `{"id":"a","model":"m","logits":[1,2]}`
		if i == 5 {
			value = "[]"
		}
		trace := fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319%d-b7ad6b7169203331-00", i)
		ms := c.Take(pipeline.Record{Input: pipeline.Logits, Topic: "z-json", Partition: 1, Offset: i, Time: 1e18,
			Alone:   i == 3,
			Headers: []pipeline.Header{{Key: tracing.Header, Value: []byte(trace)}, {Key: "other"}},
			Value:   []byte(value)})
		if i == 8 {
			ms = append(ms, c.Release()...)
		}
		for _, m := range ms {
			kept := pipeline.TraceOf(m.Headers)
			if len(kept) != 1 {
				t.Fatalf("headers %q", m.Headers)
			}
			got = append(got, fmt.Sprintf("%d rows, trace %c", len(rowsOf(t, &m)), kept[0].Value[34]))
		}
	}
	if want := []string{"3 rows, trace 2", "1 rows, trace 3", "4 rows, trace 8"}; !slices.Equal(got, want) {
		t.Errorf("messages of %q, want %q", got, want)
	}
}
