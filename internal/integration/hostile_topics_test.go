//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

func init() { hostile["doors2-every-topic"] = everyTopic }

// everyTopic writes to every topic that is read whatever a broken or hostile writer could: a good model beside stays
// exact, and the process does not end, neither then nor at its next start.
func everyTopic(t *testing.T, a *attack) {
	a.Input = "broken, cut, foreign and huge records, odd keys, times and headers, aborted transactions; on every topic"
	a.Before = "a forged source header held back every model of its shard: panes were never closed"
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hook.Close()
	want := goodHash(t)
	s := configureEdited(t, oneDay+fmt.Sprintf("calibrated: {enabled: true}\nhistory: {store: file}\n"+
		"heads: {shadow: true}\nnotify: {webhooks: [{url: %q}]}\n", hook.URL),
		"keyed: true", "keyed: false", "checkpoints:", "checkpoints:\n  store: topic",
		"  deadletter:", "  checkpoints: "+topicPrefix(t)+".checkpoints\n  heads: "+topicPrefix(t)+
			".heads\n  finetune: "+topicPrefix(t)+".finetune\n  deadletter:")
	w := &epochWorld{t: t, s: s}
	p := run(t, s)
	good := goodStream(t, s)
	half := len(good) / 2
	kafkatest.Write(t, brokers, good[:half]...)
	p.wait(time.Minute, "take the first half", func() bool {
		st, err := p.status()
		return err == nil && st.Drained && st.Counts.Predictions > 0
	})
	topics := []string{"logits", "labels", "panes", "snapshots", "calibrators", "alerts", "decisions", "finetune",
		"heads", "checkpoints", "logits-by-id", "labels-by-id"}
	named := func(key string) string {
		if in, ok := strings.CutSuffix(key, "-by-id"); ok {
			return s.byID(in)
		}
		return w.named(key)
	}
	samples := map[string][]byte{}
	for _, key := range topics {
		if v := sampleOf(t, key, named(key)); v != nil {
			samples[key] = bytes.ReplaceAll(v, []byte("good"), []byte("evil"))
		}
	}
	sent := 0
	samples["logits-by-id"], samples["labels-by-id"] = samples["logits"], samples["labels"]
	for _, key := range topics {
		sent += attackTopic(t, key, named(key), samples)
		abortedRows(t, named(key), samples[key])
	}
	began := time.Now()
	kafkatest.Write(t, brokers, good[half:]...)
	settled := func() {
		p.wait(time.Minute, "take everything", func() bool {
			st, err := p.status()
			return err == nil && st.Drained && st.Counts.Joined >= goodRows
		})
		a.exact(t, p, want)
		if n := p.restarts(); n > 0 {
			t.Errorf("tasks ended %d times", n)
		}
	}
	settled()
	a.Lag = fmt.Sprintf("%.1f s", time.Since(began).Seconds())
	a.RSS = p.peak()
	p.stop()
	p = run(t, s) // all topics are read once more, from their starts
	settled()
	a.RSS = max(a.RSS, p.peak())
	p.stop()
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += letterBytes(t, &m)
	}
	const most = 500 << 20
	if a.RSS > most {
		t.Errorf("%d MB of memory", a.RSS>>20)
	}
	a.Note = fmt.Sprintf("%d records", sent)
}

// sampleOf is a record as the topic has them, the longest of the first ones, or one that is made up where it has none.
func sampleOf(t *testing.T, key, topic string) []byte {
	t.Helper()
	var value []byte
	for i, m := range kafkatest.ReadAll(t, brokers, topic) {
		if i < 200 && len(m.Value) > len(value) && len(m.Value) < 100<<10 {
			value = m.Value
		}
	}
	at := record.At(start.UnixNano())
	text := json.RawMessage(`{"version":1,"method":"platt","params":{"slope":0.71,"intercept":-0.2}}`)
	var made any
	switch key {
	case "calibrators":
		made = record.Calibrator{Schema: 1, Model: "evil", Version: "1", Revision: 1, Published: true, Stage: "full",
			Reason: "period", Outcome: "published: x", DecidedAt: at, EffectiveFrom: at, Calibrator: text,
			Method: "platt", Replaces: 1, Evidence: record.Evidence{FitRows: 10, TestRows: 10, FitFrom: at, FitTo: at}}
	case "alerts":
		one := 1.0
		made = record.Alert{Schema: 1, Model: "evil", Version: "1", Rule: "r", Severity: "page", State: "firing",
			Since: at, At: at, Value: 1, ECELo: &one, ECEHi: &one, Rows: 10, Signal: "raw", Message: "m"}
	case "finetune":
		made = record.Finetune{Schema: 1, ID: "evil/1+head1", Model: "evil", Version: "1", Number: 1,
			ShadowVersion: "1+head1", Reason: "ece", DecidedAt: at, ShadowFrom: at, Deadline: at, Recipe: "auto",
			Seed: 7, Classes: 10, Data: record.FinetuneData{From: at, To: at, Rows: 10}}
	case "heads":
		made = record.Head{Schema: 1, Kind: record.HeadTrained, ID: "evil/1+head1", Model: "evil", Version: "1",
			Number: 1, ShadowVersion: "1+head1", Attempt: 1, Outcome: record.OutcomeTrained, Features: 4, Classes: 10,
			EffectiveFrom: at, Weights: []byte("no tensors")}
	case "decisions":
		alert, err := json.Marshal(record.Alert{Schema: 1, Model: "evil", Version: "1", Since: at, At: at, Rows: 3})
		if err != nil {
			t.Fatal(err)
		}
		made = record.Decision{Schema: 1, Kind: record.DecisionAlert, Model: "evil", Version: "1", Record: alert}
	default:
		return value
	}
	value, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

var numberText = regexp.MustCompile(`:-?[0-9][0-9.e+-]*`)

// broken are variations of a record: cut, each count as large as can be, values of another kind.
func broken(v []byte) (out [][]byte) {
	const cuts, places = 48, 64
	for n := 0; n < len(v); n += max(1, len(v)/cuts) {
		out = append(out, v[:n])
	}
	for _, n := range []int{1, 2, 3, 5, 9, len(v) - 1} {
		out = append(out, v[:max(0, min(n, len(v)))])
	}
	if json.Valid(v) {
		numbers := numberText.FindAllIndex(v, -1)
		for _, at := range numbers {
			for _, by := range []string{":9223372036854775807", ":1e308", ":-1", ":NaN", `:"x"`, ":null",
				":" + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
				if len(by) > 100 && len(out)%5 > 0 {
					continue // some are enough of these
				}
				out = append(out, slices.Concat(v[:at[0]], []byte(by), v[at[1]:]))
			}
		}
		return append(out, []byte("{}"), []byte("null"), []byte("[]"), []byte(strings.Repeat("[", 100_000)))
	}
	most := bytes.Repeat([]byte{0xff}, 9)
	for at := 0; at < len(v); at += max(1, min(len(v)/places, 4)) {
		out = append(out,
			slices.Concat(v[:at], most, []byte{1}, v[at:]),
			slices.Concat(v[:at], most[:min(8, len(v)-at)], v[min(at+8, len(v)):]))
		if len(out) > 400 {
			break
		}
	}
	return out
}

// harmless reports whether a value of a topic is none that its readers may take for a good model's: who can write a
// right record into a topic of ours can say what he likes.
func harmless(key string, d *arrowio.Decoder, v []byte) bool {
	switch key {
	case "panes":
		_, err := pipeline.DecodePane(v)
		return err != nil
	case "logits", "labels", "logits-by-id", "labels-by-id": // their times may be those of a clock that is wrong
		kind := arrowio.Predictions
		if strings.HasPrefix(key, "labels") {
			kind = arrowio.Labels
		}
		bs, err := d.Decode(v, arrowio.Origin{Time: start.UnixNano()}, kind)
		for _, b := range bs {
			b.Release()
		}
		return err != nil
	}
	return true
}

// compacted are the topics of which the brokers keep the latest record of a key.
var compacted = []string{"calibrators", "alerts", "heads", "checkpoints"}

// attackTopic sends to a topic what is broken, and returns how many records.
func attackTopic(t *testing.T, key, topic string, samples map[string][]byte) int {
	t.Helper()
	var rs []*kgo.Record
	add := func(r kgo.Record) {
		r.Topic, r.Partition = topic, int32(len(rs)%partitions)
		if r.Key == nil && slices.Contains(compacted, key) {
			r.Key = []byte("evil") // brokers refuse records without
		}
		rs = append(rs, &r)
	}
	d := arrowio.NewDecoder(arrowio.Options{})
	values := append(broken(samples[key]), []byte{}, []byte{0}, []byte("x"), bytes.Repeat([]byte{0xff}, 1000))
	for other, v := range samples {
		if other != key {
			values = append(values, v)
		}
	}
	for _, v := range values {
		if harmless(key, d, v) {
			add(kgo.Record{Key: []byte("evil/1"), Value: v})
		}
	}
	junk := []byte("junk")
	add(kgo.Record{Value: junk})
	add(kgo.Record{Key: bytes.Repeat([]byte("k"), 1<<20), Value: junk})
	add(kgo.Record{Key: []byte("evil/1")}) // a tombstone
	add(kgo.Record{Key: []byte{0xff, 0, 0xfe}, Value: junk})
	headers := make([]kgo.RecordHeader, 100_000)
	add(kgo.Record{Value: junk, Headers: headers})
	for _, name := range []string{pipeline.SourceHeader, pipeline.SourceIdleHeader, "traceparent"} {
		for _, value := range []string{"", "u/3/65536/9223372036854775806/0", "u/0/1/0/0", strings.Repeat("9", 9999)} {
			h := []kgo.RecordHeader{{Key: name, Value: []byte(value)}}
			source := kgo.RecordHeader{Key: pipeline.SourceHeader, Value: []byte("u/0/9/0/0")}
			add(kgo.Record{Value: junk, Headers: h})
			add(kgo.Record{Headers: append(h, source)})
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.ProduceSync(ctx, rs...).FirstErr(); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	for _, ms := range []int64{-1, 0, math.MaxInt64} { // the broker may refuse one of these
		at := time.UnixMilli(ms)
		client.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte("evil"), Value: junk, Timestamp: at})
	}
	return len(rs)
}

// abortedRows writes records in a transaction that is aborted: nobody may see them.
func abortedRows(t *testing.T, topic string, sample []byte) {
	t.Helper()
	value := sample
	if strings.HasSuffix(topic, ".logits") {
		c := arrowio.Columns{Model: "good", Version: "1", K: 2}
		for i := range 100 {
			c.IDs, c.TS = append(c.IDs, fmt.Sprint("aborted-", i)), append(c.TS, start.UnixNano())
			c.Logits = append(c.Logits, 1, 2)
		}
		var err error
		if value, err = arrowio.EncodePredictions(c); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(topic+"-aborted"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range [][]byte{value, []byte("junk"), nil} {
		r := &kgo.Record{Topic: topic, Key: []byte("good/1"), Value: v, Timestamp: start}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
	}
	if err := client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}
