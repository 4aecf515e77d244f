package inputs

import (
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
)

// oddRecord is a record as somebody's producer writes it.
type oddRecord struct {
	name   string
	config Config
	record Record
}

func oddJSON(name, value string, columns Columns) oddRecord {
	return oddRecord{name, Config{Format: "json", Model: "m", Columns: columns}, Record{Key: []byte("a"),
		Value: []byte(value), Headers: headers("id", "a")}}
}

// TestOddRecords: numbers and times as text, times of pandas, marks before the text, and the answers of servers.
func TestOddRecords(t *testing.T) {
	own := Columns{}
	chat := "choices[0].logprobs.content[0].top_logprobs"
	for _, c := range []oddRecord{
		oddJSON("numbers as text", `{"id":"a","probs":["0.25","0.75"],"label":"1","ts":"1709251200"}`, own),
		oddJSON("probability as text", `{"id":"a","prob":"0.75","label":"true","ts":1709251200000}`, own),
		oddJSON("label 1.0", `{"id":"a","prob":7.5e-1,"label":"1.0","ts":1709251200.0}`, own),
		oddJSON("pandas", `{"id":"a","prob":0.75,"label":1,"ts":"2024-03-01 00:00:00"}`, own),
		oddJSON("PostgreSQL", `{"id":"a","prob":0.75,"label":1,"ts":"2024-03-01 02:00:00+02"}`, own),
		oddJSON("Python", `{"id":"a","prob":0.75,"label":true,"ts":"2024-03-01T00:00:00.000"}`, own),
		oddJSON("Java", `{"id":"a","prob":0.75,"label":1,"ts":"2024-03-01T02:00:00+0200"}`, own),
		oddJSON("byte order mark", "\ufeff"+`{"id":"a","prob":0.75,"label":1,"ts":"2024-03-01T00:00:00Z"}`, own),
		oddJSON("MLflow", `{"dataframe_split":{"columns":["p","q","y"],"data":[[0.25,0.75,1]]},"at":"1709251200"}`,
			Columns{ID: "header:id", TS: "at", Label: "dataframe_split.data[][2]",
				Probs: "dataframe_split.data[][0], dataframe_split.data[][1]"}),
		oddJSON("TensorFlow Serving", `{"predictions":[[0.25,0.75]],"y":[1],"at":1709251200}`,
			Columns{ID: "record:key", TS: "at", Label: "y[]", Probs: "predictions[]"}),
		oddJSON("OpenAI", `{"id":"a","object":"chat.completion","created":1709251200,"choices":[{"index":0,"message":`+
			`{"content":"yes"},"logprobs":{"content":[{"top_logprobs":[{"token":"no","logprob":0.25},`+
			`{"token":"yes","logprob":0.75}]}]}}],"usage":{"feedback":1}}`, Columns{ID: "id", TS: "created",
			Logits: chat + "[0].logprob, " + chat + "[1].logprob", Label: "usage.feedback"}),
		{"KServe's texts", Config{Format: "v2", Classes: []string{"cat", "dog"}, Columns: Columns{ID: "id",
			TS: "parameters.at", Probs: "outputs.p", Label: "outputs.y"}}, Record{Value: []byte(`{"model_name":"m",` +
			`"id":"a","parameters":{"at":1709251200},"outputs":[{"name":"p","shape":[1,2],"datatype":"FP64","data":` +
			`[0.25,0.75]},{"name":"y","shape":[1],"datatype":"BYTES","data":["dog"]}]}`)}},
		{"CloudEvents in a batch", Config{Format: "cloudevents", Model: "m", Columns: Columns{ID: "event:id"}},
			Record{Value: []byte(`[{"specversion":"1.0","type":"t","source":"s","id":"a","data":{"prob":"0.75",` +
				`"label":"1"},"time":"2024-03-01T00:00:00Z"}]`)}},
	} {
		bs := decoded(t, c.config, &c.record)
		if len(bs) != 1 || bs[0].N != 1 {
			t.Errorf("%s: got %+v", c.name, bs)
			continue
		}
		b := bs[0]
		if len(b.Scores) == 1 { // of class 1
			b.Scores = []float32{1 - b.Scores[0], b.Scores[0]}
		}
		if b.IDs[0] != arrowio.HashID("a") || b.TS[0] != 1709251200e9 || b.Label[0] != 1 || b.Scores[0] != .25 ||
			b.Scores[1] != .75 {
			t.Errorf("%s: got %v, %v, %v", c.name, b.Scores, b.Label, b.TS)
		}
	}
	for name, value := range map[string][]byte{"a tombstone": nil, "an empty value": {}, "no rows": []byte("[]")} {
		r := &Record{Key: []byte("a"), Value: value}
		if bs := decoded(t, Config{Format: "json", Model: "m"}, r); len(bs) != 0 {
			t.Errorf("%s: got %+v", name, bs)
		}
	}
}

// TestTimesBeyondRows: a time that no row may have is one of its row, as text and as a number.
func TestTimesBeyondRows(t *testing.T) {
	for _, ts := range []string{`"9999-12-31T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `99999999999`, `1e300`} {
		value := `[{"id":"a","prob":0.75,"ts":` + ts + `},{"id":"b","prob":0.25,"ts":1709251200}]`
		b := decoded(t, Config{Format: "json", Model: "m"}, &Record{Value: []byte(value)})
		if len(b) != 1 || b[0].N != 2 || b[0].TS[0] != math.MaxInt64 ||
			b[0].TS[1] != 1709251200e9 {
			t.Errorf("%s: got %+v", ts, b)
		}
	}
}

// TestTensorsOfMoreDimensions: scores of several items a row are not taken for one list of classes; features are.
func TestTensorsOfMoreDimensions(t *testing.T) {
	tensor := func(name, shape, data string) string {
		return `{"name":"` + name + `","datatype":"FP32","shape":` + shape + `,"data":` + data + `}`
	}
	features := tensor("x", "[1,2,2]", "[1,2,3,4]")
	config := Config{Format: "v2", Model: "m", Columns: Columns{ID: "id", Logits: "outputs.z", Features: "outputs.x"}}
	for shape, want := range map[string]string{"[1,2,1]": "", "[1,1,2]": "", "[1,2]": "",
		"[1,2,2]": `tensor "z": a shape of [1 2 2]: a row must have one list of scores`} {
		data := "[1,2]"
		if want != "" {
			data = "[1,2,3,4]"
		}
		d, err := New(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		value := `{"id":"a","outputs":[` + tensor("z", shape, data) + "," + features + "]}"
		_, err = d.Decode(&Record{Value: []byte(value)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %s", shape, err, want)
		}
	}
}

// TestOddRecordsAreRefusedInWords: what cannot be read says what to do.
func TestOddRecordsAreRefusedInWords(t *testing.T) {
	for value, want := range map[string]string{
		`{"id":"a","probs":[[0.25,0.75]]}`:            "write [] behind the path if each item is a row",
		`{"id":"a","prob":0.75,"label":[1]}`:          "must be a class; [0] in the path is its first",
		`{"id":{"$oid":"1"},"prob":0.75}`:             "must be text or a number; the path must go on",
		`{"id":"a","prob":NaN}`:                       "JSON has no NaN; send null where there is no number",
		`{"id":"a","logits":[-Infinity,1]}`:           "send null where there is no number, -1e9 for a masked logit",
		`{"id":"a","prob":"0,75"}`:                    `"0,75" is text, must be a number`,
		`{"id":"a","prob":"high"}`:                    `"high" is text, must be a number`,
		`{"id":"a","prob":0.5,"label":"cat"}`:         "or name them in their order with classes of inputs",
		`{"id":"a","prob":0.5,"label":"0.5"}`:         "0.5 must be a whole number",
		`{"id":"a","prob":0.5,"ts":"01.03.2024"}`:     "must be a time as in RFC 3339, such as 2024-03-01T12:00:00Z",
		`{"id":"a","prob":0.5,"ts":20260301}`:         "20260301 is no time since 1970 but the date 2026-03-01",
		`{"id":"a","prob":0.5,"ts":"202603011230"}`:   "is no time since 1970 but the date 2026-03-01T12:30",
		`{"id":"a","y_prob":0.5}`:                     "there is nothing, or null, at \"logits, probs, logit, prob\"",
		`{"prob":0.5}`:                                "",
		`null`:                                        "rows without scores",
		"id,prob\na,0.5\n":                            "where a value must be",
		"\x1f\x8b\x08\x00":                            "where a value must be",
		`{"id":"a","payload":"{\"prob\":0.5}"}` + "x": "where a value must be",
	} {
		d, err := New(Config{Format: "json", Model: "m"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Decode(&Record{Value: []byte(value)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
}
