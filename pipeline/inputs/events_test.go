package inputs

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

func headers(pairs ...string) (hs []pipeline.Header) {
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, pipeline.Header{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return hs
}

// isRows compares the two rows that every format of these tests carries.
func isRows(t *testing.T, bs []*arrowio.Batch, ids ...string) {
	t.Helper()
	if len(bs) != 1 || bs[0].N != 2 || bs[0].K != 2 || bs[0].Models[0].Model != "iris" {
		t.Fatalf("got %+v", bs)
	}
	for i, want := range []float32{.25, .75, 1, 0} {
		if bs[0].Scores[i] != want {
			t.Errorf("got %v", bs[0].Scores)
		}
	}
	for i, id := range ids {
		if bs[0].IDs[i] != arrowio.HashID(id) {
			t.Errorf("row %d has not the id %s", i, id)
		}
	}
}

func float32s(v ...float32) (b []byte) {
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// modelInferResponse is one with the rows, and BYTES of ids.
func modelInferResponse(raw bool) []byte {
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	tensor := func(name, datatype string, contents []byte, shape ...uint64) (b []byte) {
		b = text(text(b, 1, name), 2, datatype)
		var packed []byte
		for _, d := range shape {
			packed = protowire.AppendVarint(packed, d)
		}
		b = text(b, 3, string(packed))
		if !raw {
			b = text(b, 5, string(contents))
		}
		return b
	}
	scores := float32s(.25, .75, 1, 0)
	b := text(text(text(nil, 1, "iris"), 2, "3"), 3, "q")
	b = text(b, 5, string(tensor("probs", "FP32", text(nil, 6, string(scores)), 2, 2)))
	b = text(b, 5, string(tensor("ids", "BYTES", text(text(nil, 8, "a"), 8, "b"), 2)))
	if raw {
		b = text(b, 6, string(scores))
		b = text(b, 6, "\x01\x00\x00\x00a\x01\x00\x00\x00b")
	}
	return b
}

func TestV2(t *testing.T) {
	c := Config{Format: "v2", Columns: Columns{ID: "outputs.ids", Probs: "outputs.probs"}}
	const ids = `{"name":"ids","shape":[2],"datatype":"BYTES","data":["a","b"]}`
	for name, r := range map[string]*Record{
		"flat": {Value: []byte(`{"model_name":"iris","outputs":[` + ids +
			`,{"data":[0.25,0.75,1,0],"name":"probs","datatype":"FP32","shape":[2,2]},{"name":"x","data":[{}]}]}`)},
		"nested": {Value: []byte(`{"outputs":[{"data":[[0.25,0.75],[1,0]],"name":"probs","datatype":"FP64",` +
			`"shape":[2,2]},` +
			ids + `],"model_name":"iris"}`)},
		"raw": {Headers: headers("inference-header-content-length", "214"),
			Value: append([]byte(`{"model_name":"iris","outputs":[{"name":"other","shape":[1],"datatype":"INT8",`+
				`"parameters":{"binary_data_size":1}},{"name":"probs","shape":[2,2],"datatype":"FP32",`+
				`"parameters":{"binary_data_size":16}},`+ids+`]}`+"\x07"), float32s(.25, .75, 1, 0)...)},
		"Protobuf":               {Value: modelInferResponse(false)},
		"Protobuf, raw contents": {Value: modelInferResponse(true)},
	} {
		t.Run(name, func(t *testing.T) {
			if n := strings.IndexByte(string(r.Value), 7); name == "raw" && n > 0 {
				r.Headers[0].Value = []byte(itoa(n))
			}
			isRows(t, decoded(t, c, r), "a", "b")
		})
	}
}

// TestTensorOfTwoTypes: contents of two types are refused, whichever has as many values as the shape.
func TestTensorOfTwoTypes(t *testing.T) {
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	contents := text(text(text(nil, 6, string(float32s(1))), 8, "a"), 8, "b")
	tensor := text(text(text(text(nil, 1, "y"), 2, "FP32"), 3, "\x01\x02"), 5, string(contents))
	r := &Record{Value: text(text(nil, 1, "iris"), 5, string(tensor))}
	d, err := New(Config{Format: "v2", Columns: Columns{Logits: "outputs.y"}}, Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(r); err == nil || !strings.Contains(err.Error(), "values of two types") {
		t.Errorf("got %v", err)
	}
}

// TestPartsOfProtobufAreFew: what takes more memory than its bytes is bounded, packed or not: dimensions and outputs.
func TestPartsOfProtobufAreFew(t *testing.T) {
	varint := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	part := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	output := func(packed bool, dimensions int) []byte {
		var shape, list []byte
		for range dimensions {
			shape, list = varint(shape, 3, 1), append(list, 1)
		}
		if packed {
			shape = part(nil, 3, list)
		}
		return part(append(part(nil, 1, []byte("y")), shape...), 5, part(nil, 6, float32s(1)))
	}
	dimensions := func(packed bool, n int) []byte {
		return part(part(nil, 3, []byte("q")), 5, output(packed, n))
	}
	const many = 1 << 20
	empty := func(field protowire.Number, n int) []byte {
		return bytes.Repeat(part(nil, field, nil), n)
	}
	deep := func(n int) []byte {
		return []byte(`{"id":"q","outputs":[{"name":"y","datatype":"FP32","data":[1],"shape":[` +
			strings.Repeat("1,", n-1) + `1]}]}`)
	}
	c := Config{Topic: "t", Format: "v2", Model: "m", Columns: Columns{ID: "id", Logit: "outputs.y"}}
	for _, test := range []struct {
		name, want string
		value      []byte
	}{
		{"eight dimensions", "", dimensions(false, 8)},
		{"eight dimensions, packed", "", dimensions(true, 8)},
		{"eight dimensions, JSON", "", deep(8)},
		{"nine dimensions", "more than 8 dimensions", dimensions(false, 9)},
		{"nine dimensions, packed", "more than 8 dimensions", dimensions(true, 9)},
		{"nine dimensions, JSON", "eight at most", deep(9)},
		{"many dimensions", "more than 8 dimensions", dimensions(false, many)},
		{"many dimensions, packed", "more than 8 dimensions", dimensions(true, many)},
		{"a dimension that is cut off", "its shape", part(nil, 5, part(nil, 3, []byte{0x80}))},
		{"many outputs", "more than 1024 outputs", empty(5, many)},
		{"many raw contents", "more than 1024 outputs", empty(6, many)},
	} {
		d, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = d.Decode(&Record{Value: test.value})
		runtime.ReadMemStats(&after)
		if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got error %v, want %q", test.name, err, test.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
			t.Errorf("%s: %d bytes take %d bytes of memory", test.name, len(test.value), took)
		}
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

func TestPayloadLoggers(t *testing.T) {
	const response = "org.kubeflow.serving.inference.response"
	kserve := headers("ce_type", response, "ce_id", "q", "ce_inferenceservicename", "iris", "ce_time",
		"2024-03-01T00:00:00Z")
	v1 := Config{Format: "kserve", Columns: Columns{Probs: "predictions[]"}}
	isRows(t, decoded(t, v1, &Record{Headers: kserve, Value: []byte(`{"predictions":[[0.25,0.75],[1,0]]}`)}), "q/0",
		"q/1")
	v2 := Config{Format: "kserve", Columns: Columns{Probs: "outputs.probs"}}
	isRows(t, decoded(t, v2, &Record{Headers: kserve, Value: []byte(`{"outputs":[{"name":"probs","shape":[2,2],` +
		`"datatype":"FP32","data":[0.25,0.75,1,0]}]}`)}), "q/0", "q/1")
	request := headers("ce_type", "org.kubeflow.serving.inference.request", "ce_id", "q")
	if bs := decoded(t, v1, &Record{Headers: request, Value: []byte(`{"instances":[[1]]}`)}); bs != nil {
		t.Errorf("a request: got %v", bs)
	}
	seldon := headers("CE-Type", "io.seldon.serving.inference.response", "CE-Requestid", "q",
		"CE-Inferenceservicename", "iris")
	for path, value := range map[string]string{
		"data.ndarray[]": `{"data":{"names":["a","b"],"ndarray":[[0.25,0.75],[1,0]]},"meta":{}}`,
		"data.tensor":    `{"data":{"names":["a","b"],"tensor":{"shape":[2,2],"values":[0.25,0.75,1,0]}}}`,
	} {
		c := Config{Format: "seldon", Columns: Columns{Probs: path}}
		isRows(t, decoded(t, c, &Record{Headers: seldon, Value: []byte(value)}), "q/0", "q/1")
	}
	feedback := headers("CE-Type", "io.seldon.serving.feedback", "CE-Requestid", "q")
	c := Config{Format: "seldon", Rows: "labels", Columns: Columns{Label: "truth.data.ndarray[]"}}
	b := decoded(t, c, &Record{Headers: feedback, Value: []byte(`{"truth":{"data":{"ndarray":[1,0]}}}`)})[0]
	if b.IDs[0] != arrowio.HashID("q/0") || b.Label[0] != 1 || b.Label[1] != 0 {
		t.Errorf("feedback: got %+v", b)
	}
}

func TestCloudEvents(t *testing.T) {
	c := Config{Format: "cloudevents", Columns: Columns{ID: "event:id", Model: "event:source", Probs: "p[]"}}
	const data = `{"p":[[0.25,0.75],[1,0]]}`
	event := func(data string) string {
		return `{"specversion":"1.0","type":"t","source":"iris","id":"q","time":"2024-03-01T00:00:00Z",` + data + `}`
	}
	for name, r := range map[string]*Record{
		"binary":     {Headers: headers("ce_type", "t", "ce_id", "q", "ce_source", "iris"), Value: []byte(data)},
		"structured": {Value: []byte(event(`"data":` + data))},
		"base64":     {Value: []byte(event(`"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"`))},
		"batched":    {Value: []byte("[" + event(`"data":`+data) + "]")},
	} {
		t.Run(name, func(t *testing.T) { isRows(t, decoded(t, c, r), "q/0", "q/1") })
	}
	d, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(&Record{Value: []byte(data)}); err == nil || !strings.Contains(err.Error(), "no CloudEvent") {
		t.Errorf("got %v", err)
	}
}
