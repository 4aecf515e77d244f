package ingest

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio"
)

// logs is an export with a prediction, its evaluation, a record of something else and one that is wrong.
const logs = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"m"}},
	{"key":"region","value":{"stringValue":"north"}}]},"scopeLogs":[{"logRecords":[
	{"timeUnixNano":"1709251200000000000","attributes":[{"key":"gen_ai.response.id","value":{"stringValue":"a"}},
		{"key":"plumbline.probs","value":{"arrayValue":{"values":[{"doubleValue":0.25},{"doubleValue":0.75}]}}},
		{"key":"service.version","value":{"stringValue":"7"}}]},
	{"observedTimeUnixNano":1709251201000000000,"attributes":[{"key":"gen_ai.response.id","value":{"stringValue":"a"}},
		{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":1}}]},
	{"attributes":[{"key":"gen_ai.response.id","value":{"stringValue":"a"}},
		{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.85}}]},
	{"body":{"stringValue":"started"}},
	{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331",
		"attributes":[{"key":"plumbline.logits","value":{"stringValue":"none"}}]}]}]}]}`

// message, text and attr write Protobuf by hand.
func message(n protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), bytes.Join(parts, nil))
}

func attr(n protowire.Number, key string, value []byte) []byte {
	return message(n, message(1, []byte(key)), message(2, value))
}

func doubles(v ...float64) []byte {
	var items []byte
	for _, f := range v {
		items = append(items, message(1, protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type),
			math.Float64bits(f)))...)
	}
	return message(5, items)
}

// spans is an export in Protobuf of one span, without an id but its own.
func spans() []byte {
	trace, _ := hex.DecodeString("0af7651916cd43dd8448eb211c80319c")
	span, _ := hex.DecodeString("b7ad6b7169203331")
	end := protowire.AppendFixed64(protowire.AppendTag(nil, 8, protowire.Fixed64Type), 1709251200000000000)
	label := message(2, protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1))
	return message(1,
		message(1, attr(1, "service.name", message(1, []byte("m"))), attr(1, "region", message(1, []byte("north")))),
		message(2, message(2, message(1, trace), message(2, span), end, attr(9, "plumbline.probs", doubles(.25, .75)),
			message(9, message(1, []byte("plumbline.label")), label))))
}

func postOTLP(h http.Handler, path, contentType, encoding string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Prefix+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Content-Encoding", encoding)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOTLP(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(logs))
	_ = z.Close()
	for name, x := range map[string]struct {
		path, contentType, encoding string
		body                        []byte
		id, version, answer         string
		labels                      int
	}{
		"logs":       {"otlp/v1/logs", "application/json", "", []byte(logs), "a", "7", `"rejectedLogRecords":"1"`, 1},
		"logs, gzip": {"otlp/v1/logs", "application/json", "gzip", zipped.Bytes(), "a", "7", "has text", 1},
		"spans": {"otlp/v1/traces", "application/x-protobuf", "", spans(),
			"0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", "0", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			to := &written{}
			w := postOTLP(newTest(to), x.path, x.contentType, x.encoding, x.body)
			if w.Code != 200 || x.answer != "has text" && !strings.Contains(w.Body.String(), x.answer) {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			labels := 0
			for i, m := range to.messages {
				bs, err := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}}).Decode(m, arrowio.Origin{},
					to.kinds[min(i, len(to.kinds)-1)])
				if err != nil {
					t.Fatal(err)
				}
				b := bs[0]
				if b.IDs[0] != arrowio.HashID(x.id) {
					t.Errorf("ids %v", b.IDs)
				}
				if to.kinds[i] == arrowio.Labels {
					labels++
					continue
				}
				if b.N != 1 || b.Scores[1] != .75 || b.TS[0] != 1709251200000000000 ||
					b.Models[0] != (arrowio.ModelKey{Model: "m", Version: x.version}) ||
					b.Slices[0].Values[b.Slices[0].Index[0]] != "north" || x.labels == 0 && b.Label[0] != 1 {
					t.Errorf("got %+v", b)
				}
			}
			if labels != x.labels || len(to.messages) != 1+x.labels {
				t.Errorf("%d messages, %d of labels", len(to.messages), labels)
			}
		})
	}
}

// TestOTLPWithoutTimes: a record that has none is taken, also beside one that has.
func TestOTLPWithoutTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attributes = `"attributes":[{"key":"plumbline.prob","value":{"doubleValue":0.5}},
			{"key":"plumbline.model","value":{"stringValue":"m"}},{"key":"plumbline.id","value":{"stringValue":"a"}}]`
		to := &written{}
		w := postOTLP(newTest(to), "otlp/v1/logs", "application/json", "", []byte(`{"resourceLogs":[{"scopeLogs":[
			{"logRecords":[{`+attributes+`},{"timeUnixNano":"7",`+attributes+`}]}]}]}`))
		if w.Code != 200 || strings.TrimSpace(w.Body.String()) != "{}" {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(to.messages[0], arrowio.Origin{}, arrowio.Predictions)
		if want := []int64{time.Now().UnixNano(), 7e9}; err != nil || !slices.Equal(bs[0].TS, want) {
			t.Errorf("got %v, %v, want %v", bs[0].TS, err, want)
		}
	})
}

// TestOTLPOfOneResource: what a resource says comes into each of its rows, and is looked through once.
func TestOTLPOfOneResource(t *testing.T) {
	record := `{"attributes":[{"key":"plumbline.label","value":{"intValue":1}}]},`
	records := strings.TrimSuffix(strings.Repeat(record, 20_000), ",")
	attribute := `{"key":"plumbline.model","value":{"stringValue":"` + strings.Repeat("m", 1<<16) + `"}}`
	many := strings.Repeat(`{"key":"k","value":{"boolValue":true}},`, 20_000) + `{"key":"service.name"}`
	for name, c := range map[string]struct {
		attributes string
		code       int
	}{"a long name": {attribute, 413}, "many attributes": {many, 200}} {
		body := []byte(`{"resourceLogs":[{"resource":{"attributes":[` + c.attributes +
			`]},"scopeLogs":[{"logRecords":[` + records + `]}]}]}`)
		began := time.Now()
		h := New(&written{}, Options{MaxBody: 8 << 20, Refused: refused, Log: slog.New(slog.DiscardHandler)})
		w := postOTLP(h, "otlp/v1/logs", "application/json", "", body)
		if took := time.Since(began); w.Code != c.code || took > 5*time.Second {
			t.Errorf("%s: %d in %v: %.200s", name, w.Code, took, w.Body)
		}
	}
}

func TestOTLPRefusals(t *testing.T) {
	bomb := func() []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.CopyN(z, zeros{}, 64<<20)
		_ = z.Close()
		return b.Bytes()
	}()
	for _, c := range []struct {
		path, contentType, encoding string
		body                        []byte
		code                        int
	}{
		{"otlp/v1/logs", "text/plain", "", nil, 415},
		{"otlp/v1/logs", "application/json", "zstd", []byte("{}"), 415},
		{"otlp/v1/logs", "application/json", "gzip", []byte("{}"), 400},
		{"otlp/v1/logs", "application/json", "", []byte(`{"resourceLogs":7}`), 400},
		{"otlp/v1/traces", "application/x-protobuf", "", []byte{0x0a, 5}, 400},
		{"otlp/v1/traces", "application/json", "gzip", bomb, 413},
		{"otlp/v1/metrics", "application/json", "", []byte("{}"), 404},
	} {
		if w := postOTLP(newTest(&written{}), c.path, c.contentType, c.encoding, c.body); w.Code != c.code {
			t.Errorf("%+v: got %d %s", c.path, w.Code, w.Body)
		}
	}
	w := postOTLP(newTest(&written{err: io.EOF}), "otlp/v1/traces", "application/x-protobuf", "", spans())
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d", w.Code)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzOTLP(f *testing.F) {
	f.Add([]byte(logs), true, false)
	f.Add(spans(), false, true)
	f.Add(spans(), false, false)
	f.Fuzz(func(t *testing.T, body []byte, inJSON, ofSpans bool) {
		path, contentType := "otlp/v1/logs", "application/x-protobuf"
		if inJSON {
			contentType = "application/json"
		}
		if ofSpans {
			path = "otlp/v1/traces"
		}
		out := &written{}
		w := postOTLP(newTest(out), path, contentType, "", body)
		if w.Code != 200 && w.Code != 400 && w.Code != 413 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		size := 0
		for _, m := range out.messages {
			size += len(m)
		}
		if most := 1<<12 + 1<<10*len(body); size > most {
			t.Errorf("messages of %d bytes for a body of %d, at most %d", size, len(body), most)
		}
	})
}

// TestHollowExports: bodies of empty messages are refused before each takes a hundred bytes.
func TestHollowExports(t *testing.T) {
	const size = 1 << 20
	fill := func(head, item, tail string) []byte {
		return []byte(head + strings.TrimSuffix(strings.Repeat(item+",", size/(len(item)+1)), ",") + tail)
	}
	values := `{"resourceLogs":[{"resource":{"attributes":[{"key":"a","value":{"arrayValue":{"values":[`
	for name, c := range map[string]struct {
		body []byte
		kind string
		code int
	}{
		"resources":             {fill(`{"resourceLogs":[`, `{}`, `]}`), "json", 400},
		"resources of nothing":  {fill(`{"resourceLogs":[`, `null`, `]}`), "json", 400},
		"values":                {fill(values, `{}`, `]}}}]}}]}`), "json", 400},
		"values with content":   {fill(values, `{"doubleValue":1}`, `]}}}]}}]}`), "json", 200},
		"commas in a text":      {fill(`{"resourceLogs":[{"schemaUrl":"\"`, ``, `"}]}`), "json", 200},
		"protobuf":              {bytes.Repeat(message(1), size/2), "x-protobuf", 400},
		"protobuf, scopes":      {message(1, bytes.Repeat(message(2), size/2)), "x-protobuf", 400},
		"whole numbers":         {ints(size / 4), "x-protobuf", 200},
		"protobuf with content": {bytes.Repeat(message(1, attr(6, "plumbline.id", nil)), size/24), "x-protobuf", 200},
	} {
		h := New(&written{}, Options{MaxBody: 8 << 20, Refused: refused, Log: slog.New(slog.DiscardHandler)})
		w := postOTLP(h, "otlp/v1/logs", "application/"+c.kind, "", c.body)
		if w.Code != c.code || c.code == 400 && !strings.Contains(w.Body.String(), "too many empty messages") {
			t.Errorf("%s: %d %.200q, want %d", name, w.Code, w.Body, c.code)
		}
	}
}

// ints is an export of one record with an attribute of n small whole numbers: four bytes each.
func ints(n int) []byte {
	values := bytes.Repeat(message(1, []byte{3 << 3, 1}), n)
	return message(1, message(2, message(2, attr(6, "plumbline.features", message(5, values)))))
}
