package inputs

import (
	"errors"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/pipeline"
)

// fuzzed are the mappings that records are fuzzed under, by format.
var fuzzed = map[string][]Config{
	"json": {
		{Format: "json"},
		{Format: "json", Rows: "labels", Classes: []string{"a", "b"}},
		{Format: "json", Model: "m", Columns: Columns{ID: "id", Probs: "p[]", Features: "x[]", TS: "h[3].t",
			Label: "y[].l"}},
		{Format: "json", Model: "m", Columns: Columns{ID: "record:key", Logits: "a, b", TS: "header:t", Weight: "w"}},
	},
}

func init() {
	m := Columns{Probs: "outputs.probs", ID: "outputs.ids", Label: "outputs.label"}
	fuzzed["v2"] = []Config{{Format: "v2", Columns: m},
		{Format: "v2", Model: "m", Columns: Columns{Prob: "outputs.probs"}}}
	fuzzed["events"] = []Config{
		{Format: "kserve", Columns: m},
		{Format: "kserve", Columns: Columns{Logits: "predictions[]"}},
		{Format: "seldon", Columns: Columns{Probs: "data.tensor"}},
		{Format: "seldon", Rows: "labels", Columns: Columns{Label: "truth.data.ndarray[]"}},
		{Format: "cloudevents", Columns: Columns{ID: "event:id", Model: "event:source", Probs: "p[]"}},
	}
}

// What a record may cost, however hostile: bytes allocated for one in all, and for each of its own, and all the
// messages that it becomes.
const (
	fuzzMax          = 1 << 16
	fuzzAlloc        = 1 << 24
	fuzzAllocPerByte = 1 << 8
	fuzzOut          = 2 * blowUp * fuzzMax
)

// allocated is what the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// check decodes a record under all mappings of a format: what is refused is refused for a reason, and what is not can
// be decoded as any message in Arrow, with all its rows.
func check(t *testing.T, format string, r *Record) { checkWith(t, format, r, nil) }

// checkWith is check of records whose schemas are there.
func checkWith(t *testing.T, format string, r *Record, schemas Schemas) {
	watch := time.AfterFunc(10*time.Second, func() { panic("a record takes ten seconds") })
	defer watch.Stop()
	for _, c := range fuzzed[format] {
		d, err := New(c, Options{Slices: []string{"region"}, MaxBytes: fuzzMax, MaxRows: 1 << 12,
			Schemas: schemas})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Ready(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a record leaves nothing behind for the next
			before := allocated()
			messages, err := d.Decode(r)
			if got, most := allocated()-before, uint64(fuzzAlloc+fuzzAllocPerByte*len(r.Value)); got > most {
				t.Fatalf("%+v: %d bytes are allocated for a record of %d, at most %d", c, got, len(r.Value), most)
			}
			var fe *wire.FormatError
			if err != nil && (!errors.As(err, &fe) || fe.Reason == wire.Panicked) {
				t.Fatalf("%+v: %v", c, err)
			}
			rows, size := 0, 0
			for _, m := range messages {
				size += len(m)
				if len(m) > fuzzMax {
					t.Fatalf("%+v: a message of %d bytes", c, len(m))
				}
				bs, err := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}}).Decode(m, arrowio.Origin{},
					c.Kind())
				if err != nil && (!errors.As(err, &fe) || fe.Reason != wire.NoModel && fe.Reason != wire.TooLarge &&
					fe.Reason != wire.NoColumn) {
					t.Fatalf("%+v: %v", c, err)
				}
				for _, b := range bs {
					rows += b.N
				}
			}
			if rows > 1<<12 {
				t.Fatalf("%+v: %d rows", c, rows)
			}
			if size > fuzzOut {
				t.Fatalf("%+v: messages of %d bytes in all, at most %d", c, size, fuzzOut)
			}
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","ts":1,"model":"m","version":"2","probs":[0.5,0.5],"label":1,"region":"x","weight":1,"served":0.5}`,
		`[{"id":1,"model":"m","logits":[1,2]},{"id":2,"model":"n","logits":[1,2,3],"features":[1,2]}]`,
		`{"id":"a","p":[[0.5,0.5],null],"x":[[1],[2]],"h":[0,0,0,{"t":"2024-03-01T00:00:00Z"}],"y":[{"l":1},{}]}`,
		`{"a":1,"b":2,"w":1}{"a":null,"b":2}`, `{"id":"a","label":"b"}` + "\n" + `{"id":"c","label":true}`,
		`{"id":"a","p":[],"model":"m"}`,
	} {
		f.Add([]byte(s), []byte("k"))
	}
	f.Fuzz(func(t *testing.T, value, key []byte) {
		check(t, "json", &Record{Key: key, Value: value, Time: 1e18,
			Headers: []pipeline.Header{{Key: "t", Value: key}}})
	})
}

func FuzzV2(f *testing.F) {
	f.Add(modelInferResponse(true), "")
	f.Add(modelInferResponse(false), "")
	f.Add([]byte(`{"model_name":"iris","outputs":[{"name":"probs","shape":[2,2],"datatype":"FP32",`+
		`"data":[[0.25,0.75],[1,0]]},`+
		`{"name":"ids","shape":[2],"datatype":"BYTES","data":["a","b"]}]}`), "")
	f.Add([]byte(`{"outputs":[{"name":"probs","shape":[1,2],"datatype":"FP16",`+
		`"parameters":{"binary_data_size":4}}]}abcd`),
		"94")
	f.Fuzz(func(t *testing.T, value []byte, length string) {
		check(t, "v2", &Record{Value: value, Headers: headers(binaryHeader, length)[:min(len(length), 1)]})
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"predictions":[[0.25,0.75],[1,0]],"data":{"tensor":{"shape":[1,2],"values":[1,2]}}}`), "x.response",
		"q")
	f.Add([]byte(`{"truth":{"data":{"ndarray":[1,0]}}}`), "x.feedback", "q")
	f.Add([]byte(`[{"specversion":"1.0","type":"a.response","source":"iris","id":"q",`+
		`"data_base64":"e30=","data":{"p":[[1,2]]}}]`),
		"", "")
	f.Fuzz(func(t *testing.T, value []byte, kind, id string) {
		r := &Record{Value: value, Headers: headers("ce_type", kind, "ce_id", id, "ce_requestid", id)}
		if kind == "" {
			r.Headers = nil
		}
		check(t, "events", r)
	})
}
