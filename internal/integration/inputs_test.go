//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
)

// inputRows is how many rows a record has that has several.
const inputRows = 7

// digitNames are the classes of the rows.
var digitNames = strings.Fields("zero one two three four five six seven eight nine")

// source is what a test needs of an entry of inputs.
type source struct {
	Topic, Rows, Format string
	Request             any // nil: predictions are whole
}

// inputRecord is what a producer of a format sends of the rows from one to another.
type inputRecord func(data *inputData, from, to int) (value []byte, headers []kafka.Header)

// inputData are the rows.
type inputData struct {
	k      int
	scores []float32
	label  []int32
}

func (d *inputData) row(i int) []float32 { return d.scores[i*d.k : (i+1)*d.k] }

// inputID is the id of row i, which came in a record of several.
func inputID(i int) string { return fmt.Sprintf("req-%05d/%d", i-i%inputRows, i%inputRows) }

func requestID(from int) string { return fmt.Sprintf("req-%05d", from) }

// rowTime is the event time of a record.
func rowTime(from int) time.Time { return start.Add(time.Duration(from) * time.Millisecond) }

// inputRecords are those of the examples, by format and rows.
var inputRecords = map[string]inputRecord{
	"arrow predictions": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		c := arrowio.Columns{Model: "digits", Version: "1", K: d.k, Logits: d.scores[from*d.k : to*d.k]}
		for i := from; i < to; i++ {
			c.IDs = append(c.IDs, inputID(i))
		}
		value, err := arrowio.EncodePredictions(c)
		if err != nil {
			panic(err)
		}
		return value, nil
	},
	"arrow labels": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		var ids []string
		for i := from; i < to; i++ {
			ids = append(ids, inputID(i))
		}
		value, err := arrowio.EncodeLabels("digits", "1", ids, nil, d.label[from:to])
		if err != nil {
			panic(err)
		}
		return value, nil
	},
	"json predictions": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		outputs := []any{}
		for i := from; i < to; i++ {
			outputs = append(outputs, keys{"logits": d.row(i)})
		}
		return asJSON(keys{"request": keys{"id": requestID(from)}, "time": rowTime(from), "outputs": outputs,
			"model": keys{"name": "digits", "version": "1"}}), nil
	},
	"v2 predictions": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		var ids []string
		for i := from; i < to; i++ {
			ids = append(ids, inputID(i))
		}
		return asJSON(keys{"model_name": "digits", "model_version": "1", "id": requestID(from), "outputs": []any{
			keys{"name": "id", "datatype": "BYTES", "shape": []int{to - from}, "data": ids},
			keys{"name": "logits", "datatype": "FP32", "shape": []int{to - from, d.k},
				"data": d.scores[from*d.k : to*d.k]},
		}}), nil
	},
	"kserve predictions": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		return asJSON(keys{"predictions": d.rows(from, to)}), event("ce_", "org.kubeflow.serving.inference.response",
			"id", requestID(from), "inferenceservicename", "digits", "time", rowTime(from).Format(time.RFC3339Nano))
	},
	"seldon predictions": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		return asJSON(keys{"data": keys{"ndarray": d.rows(from, to)}, "meta": keys{}}), event("CE-",
			"io.seldon.serving.inference.response", "Requestid", requestID(from), "Inferenceservicename", "digits")
	},
	"seldon labels": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		return asJSON(keys{"truth": keys{"data": keys{"ndarray": d.label[from:to]}}}), event("CE-",
			"io.seldon.serving.feedback", "Requestid", requestID(from))
	},
	"cloudevents predictions": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		events := []any{}
		for i := from; i < to; i++ {
			events = append(events, keys{"specversion": "1.0", "type": "prediction", "source": "/serving",
				"subject": "digits", "id": inputID(i), "time": rowTime(from), "data": keys{"logits": d.row(i)}})
		}
		return asJSON(events), nil
	},
	"cloudevents labels": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		labels := []any{}
		for i := from; i < to; i++ {
			labels = append(labels, keys{"prediction": inputID(i), "truth": d.label[i]})
		}
		return asJSON(labels), event("ce_", "outcome", "id", requestID(from))
	},
	"json labels": func(d *inputData, from, to int) ([]byte, []kafka.Header) {
		var b []byte // NDJSON
		for i := from; i < to; i++ {
			b = append(b, asJSON(keys{"prediction": inputID(i), "truth": digitNames[d.label[i]], "id": inputID(i),
				"label": d.label[i]})...)
			b = append(b, '\n')
		}
		return b, nil
	},
}

// regionOf is the cohort of row i, which only its request has; "" where that never comes.
func regionOf(i int) string {
	record := i / inputRows
	if record%10 == 7 {
		return ""
	}
	return []string{"north", "south"}[i%2]
}

// withRequests sends requests beside responses as KServe's logger does, whose workers keep no order: before, after or
// long after their response. Some never come, and of some the response never does.
func withRequests(d *inputData, responses []kafka.Message) (out []kafka.Message) {
	var late []kafka.Message
	for j, response := range responses {
		from := j * inputRows
		request := kserveRequest(requestID(from), d.features(from, min(from+inputRows, setupRows)), rowTime(from))
		switch j % 10 {
		case 0, 1, 2, 3:
			out = append(out, request, response)
		case 4, 5:
			out = append(out, response, request)
		case 6:
			late, out = append(late, request), append(out, response)
		case 7:
			out = append(out, response)
		default:
			late, out = append(late, response), append(out, request)
		}
		if j%10 == 9 {
			out, late = append(out, late...), nil
			out = append(out, kserveRequest("failed-"+requestID(from), d.features(from, from+1), rowTime(from)))
		}
	}
	return append(out, late...)
}

func kserveRequest(id string, instances []any, at time.Time) kafka.Message {
	return kafka.Message{Key: []byte("any"), Value: asJSON(keys{"instances": instances}), Time: at,
		Headers: event("ce_", "org.kubeflow.serving.inference.request", "id", id, "inferenceservicename", "digits",
			"time", at.Format(time.RFC3339Nano))}
}

// features are instances of the v1 protocol.
func (d *inputData) features(from, to int) (out []any) {
	for i := from; i < to; i++ {
		out = append(out, keys{"features": d.row(i)[:3], "region": regionOf(i)})
	}
	return out
}

func (d *inputData) rows(from, to int) (out [][]float32) {
	for i := from; i < to; i++ {
		out = append(out, d.row(i))
	}
	return out
}

// event are the attributes of a CloudEvent in headers.
func event(prefix, kind string, more ...string) []kafka.Header {
	hs := []kafka.Header{{Key: prefix + "type", Value: []byte(kind)},
		{Key: prefix + "specversion", Value: []byte("1.0")}}
	for i := 0; i < len(more); i += 2 {
		hs = append(hs, kafka.Header{Key: prefix + more[i], Value: []byte(more[i+1])})
	}
	return hs
}

func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// sendInputs sends the rows of a set-up to the topics of its inputs, with the key of each record's first id: a producer
// that knows nothing of partitions. It reports whether the set-up has any.
func sendInputs(t *testing.T, s settings) bool {
	t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	var cfg struct{ Inputs []source }
	if err := yaml.Unmarshal(text, &cfg); err != nil {
		t.Fatal(err)
	}
	rows := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	data := &inputData{rows.K, rows.Scores, rows.Label}
	for _, in := range cfg.Inputs {
		if in.Rows == "" {
			in.Rows = "predictions"
		}
		if in.Format == "" {
			in.Format = "json"
		}
		if s.registry != nil {
			sendRegistered(t, s, in, data)
			continue
		}
		encode := inputRecords[in.Format+" "+in.Rows]
		if encode == nil {
			t.Fatalf("no producer of %s in %s", in.Rows, in.Format)
		}
		var ms []kafka.Message
		for from := 0; from < setupRows; from += inputRows {
			value, headers := encode(data, from, min(from+inputRows, setupRows))
			ms = append(ms, kafka.Message{Key: []byte(inputID(from)), Value: value, Headers: headers,
				Time: rowTime(from)})
		}
		if in.Request != nil {
			ms = withRequests(data, ms)
		}
		w := &kafka.Writer{Addr: kafka.TCP(brokers...), Topic: in.Topic, Balancer: &kafka.Hash{},
			Transport:    &kafka.Transport{}, // which knows the topics that there are now
			BatchTimeout: 10 * time.Millisecond}
		if err := w.WriteMessages(t.Context(), ms...); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return len(cfg.Inputs) > 0
}

// sendHTTP posts the rows of a set-up where that takes them, everything twice: a client that had no answer sends again.
// It reports whether the set-up does.
func sendHTTP(t *testing.T, s settings) bool {
	t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	var cfg struct{ HTTP struct{ Ingest bool } }
	if err := yaml.Unmarshal(text, &cfg); err != nil {
		t.Fatal(err)
	}
	if !cfg.HTTP.Ingest {
		return false
	}
	rows := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	data := &inputData{rows.K, rows.Scores, rows.Label}
	for from := 0; from < setupRows; from += 100 {
		var lines []byte
		var labels []any
		for i := from; i < from+100; i++ {
			lines = append(lines, asJSON(keys{"id": inputID(i), "ts": rowTime(i), "logits": data.row(i)})...)
			lines = append(lines, '\n')
			labels = append(labels, keys{"id": inputID(i), "ts": rowTime(i), "label": data.label[i]})
		}
		for range 2 {
			post(t, s, "predictions?version=1", "application/x-ndjson", lines)
			post(t, s, "labels", "application/json", asJSON(labels))
		}
	}
	return true
}

func post(t *testing.T, s settings, path, contentType string, body []byte) {
	t.Helper()
	r, err := http.Post("http://"+s.listen+"/api/v1/ingest/digits/"+path, contentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"rows":100,"rejected":0`) {
		t.Fatalf("%s: %d %s, %v", path, r.StatusCode, answer, err)
	}
}
