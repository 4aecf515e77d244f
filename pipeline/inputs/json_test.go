package inputs

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// decoded is what a shard would read of a record.
func decoded(t testing.TB, c Config, r *Record, slices ...string) []*arrowio.Batch {
	t.Helper()
	d, err := New(c, Options{Slices: slices, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return batches(t, d, r, slices...)
}

func batches(t testing.TB, d *Decoder, r *Record, slices ...string) (out []*arrowio.Batch) {
	t.Helper()
	ms, err := d.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		dec := arrowio.NewDecoder(arrowio.Options{Slices: slices})
		bs, err := dec.Decode(m, arrowio.Origin{Time: r.Time}, d.cfg.Kind())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bs...)
	}
	return out
}

func TestJSONOfItsOwnNames(t *testing.T) {
	const text = `{"id":"a","ts":"2024-03-01T00:00:00.25Z","model":"m","version":"3","region":"north",
	"probs":[0.25,0.75],"label":1}
{"id":"b","ts":1709251201,"model":"m","version":"3","region":null,"probs":[0.5,0.5],"other":{"x":[1,{}]},"weight":2}

{"id":"c","ts":1709251201500.5,"model":"m","version":"3","probs":null}`
	bs := decoded(t, Config{Format: "json"}, &Record{Value: []byte(text), Time: 5}, "region")
	if len(bs) != 1 {
		t.Fatalf("got %d batches", len(bs))
	}
	b := bs[0]
	if b.N != 3 || b.K != 2 || !b.Probs || b.Models[0] != (arrowio.ModelKey{Model: "m", Version: "3"}) {
		t.Errorf("got %+v", b)
	}
	for i, want := range []int64{1709251200250000000, 1709251201000000000, 1709251201500500000} {
		if b.TS[i] != want {
			t.Errorf("ts %d: got %d, want %d", i, b.TS[i], want)
		}
	}
	if b.IDs[1] != arrowio.HashID("b") || b.Label[0] != 1 || b.Label[1] != -1 || b.Weight[1] != 2 || b.Weight[0] != 1 {
		t.Errorf("got ids %v, labels %v, weights %v", b.IDs, b.Label, b.Weight)
	}
	if b.Slices[0].Values[b.Slices[0].Index[0]] != "north" || b.Slices[0].Index[1] >= 0 {
		t.Errorf("got slices %+v", b.Slices)
	}
	if b.Good(2) || b.Reject[2] != arrowio.NullRow {
		t.Errorf("a row without scores: got %q", b.Reject[2])
	}
}

func TestJSONByPaths(t *testing.T) {
	c := Config{Format: "json", Model: "m", Columns: Columns{ID: "header:request-id", Logits: "outputs[].scores",
		Label:  "outputs[].truth",
		Slices: []SliceColumn{{Column: "region", Path: `meta."where.it.is"`}}}, Classes: []string{"cat", "dog"}}
	headers := []pipeline.Header{{Key: "Request-Id", Value: []byte("q")}}
	r := &Record{Headers: headers, Value: []byte(`{"meta":{"where.it.is":"söuth"},
		"outputs":[{"scores":[1,2]},{"truth":"dog","scores":[3,-4e-1]}]}`)}
	b := decoded(t, c, r, "region")[0]
	if b.N != 2 || b.IDs[0] != arrowio.HashID("q/0") || b.IDs[1] != arrowio.HashID("q/1") {
		t.Errorf("got %d rows, ids %v", b.N, b.IDs)
	}
	if b.Scores[3] != -0.4 || b.Label[0] != -1 || b.Label[1] != 1 ||
		b.Slices[0].Values[b.Slices[0].Index[1]] != "söuth" {
		t.Errorf("got %+v", b)
	}
	r.Value = []byte(`{"outputs":[{"scores":[1,2]}]}`)
	if b := decoded(t, c, r, "region")[0]; b.IDs[0] != arrowio.HashID("q") {
		t.Error("the id of one row has its number behind it")
	}
}

func TestJSONColumnsOfLists(t *testing.T) {
	c := Config{Format: "json", Model: "m", Columns: Columns{ID: "ids[]", Probs: "p_cat[], p_dog[]", Features: "x[]"}}
	const text = `{"ids":[7,8],"p_cat":[0.1,0.9],"p_dog":[0.9,0.1],"x":[[1,2,3],[4,5,6]]}`
	b := decoded(t, c, &Record{Value: []byte(text)})[0]
	if b.IDs[1] != arrowio.HashIntID(8) || b.Scores[0] != 0.1 || b.Scores[1] != 0.9 || b.Features[5] != 6 {
		t.Errorf("got %+v", b)
	}
}

// TestJSONOfSeveralClasses has rows of models with different numbers of classes in one record.
func TestJSONOfSeveralClasses(t *testing.T) {
	bs := decoded(t, Config{Format: "json"}, &Record{Value: []byte(`[{"id":"a","model":"m","logits":[1,2]},
		{"id":"b","model":"n","logits":[1,2,3]},{"id":"c","model":"m","logits":[3,4]}]`)})
	if len(bs) != 2 || bs[0].N != 2 || bs[1].N != 1 || bs[1].K != 3 || bs[0].Scores[3] != 4 {
		t.Errorf("got %+v", bs)
	}
}

func TestJSONLabels(t *testing.T) {
	c := Config{Format: "json", Rows: "labels", Columns: Columns{ID: "request_id", Label: "truth"},
		Classes: []string{"no", "yes"}}
	b := decoded(t, c, &Record{Value: []byte(`[{"request_id":"a","truth":"yes"},{"request_id":"b","truth":0},
		{"request_id":"c","truth":true},{"request_id":"d","truth":1.0},{"request_id":"e","truth":null},
		{"request_id":"f","truth":-1}]`)})[0]
	for i, want := range []int32{1, 0, 1, 1} {
		if b.Label[i] != want {
			t.Errorf("label %d: got %d, want %d", i, b.Label[i], want)
		}
	}
	if b.Reject[4] != arrowio.NullRow || b.Reject[5] != arrowio.LabelRange {
		t.Errorf("got %v", b.Reject)
	}
}

// TestJSONRefusals names the row, the field and the value.
func TestJSONRefusals(t *testing.T) {
	const good = `{"id":"a","model":"m","probs":[0.5,0.5]}`
	for _, c := range []struct{ text, want string }{
		{`{"id":"a","model":"m","probs":[0.5,NaN]}`, "not_json: byte 35: JSON has no NaN"},
		{
			good + `{"id":"b","model":"m","probs":"0.5"}`,
			`column_type: row 1, probs (column probs): "0.5" is text, must be a list of numbers`,
		},
		{
			good + `{"id":"b","model":"m","probs":["x"]}`,
			`row 1, probs (column probs): item 0, at byte 71: "\"x\"]}" must be a number`,
		},
		{good + good[:20], "not_json: byte 60: the record ends"},
		{
			`[` + good + `,{"id":3,"model":"m","probs":[1,0]}]`,
			`row 1, id (column id): 3 is a number, and the ids before it are text`,
		},
		{`{"id":"a","id":"b","model":"m","probs":[1,0]}`, "duplicate_column: row 0, id (column id) is there twice"},
		{
			`{"id":"a","model":"m","score":[1,0]}`,
			`column_missing: rows without scores: there is nothing, or null, at "logits, probs, logit, prob"`,
		},
		{`{"id":"a","model":"m","probs":[1]}`, "shape: row 0, probs (column probs): 1 scores, at least 2"},
		{`{"id":"a","model":"m","probs":[1,0],"label":"cat"}`, `"cat" is text; send a class's number`},
		{`{"id":"a","model":"m","probs":[1,0],"label":0.5}`, `0.5 must be a whole number`},
		{`{"id":"a","model":"m","probs":[1,0],"ts":"yesterday"}`, `"yesterday" must be a time as in RFC 3339`},
		{`{"id":{},"model":"m","probs":[1,0]}`, "an object at byte 6, must be text or a number"},
		{
			`"text"`, `byte 0, row 0: "\"text\"" where id must have an object`,
		},
		{`{"x":` + strings.Repeat("[", 100000), "too_large: byte 260: nested deeper than 256"},
		{"\x80\x01", "not_json: byte 0"},
		{`{"id":"` + "\xff" + `","model":"m","probs":[1,0]}`, "utf8: row 0, id (column id)"},
		{`{"id":"a","model":"m","probs":[1,0]} x`, "not_json: byte 37"},
		{`{"id":12345678901234567890123,"model":"m","probs":[1]}`, "must be a whole number of 64 bits"},
	} {
		d, err := New(Config{Format: "json"}, Options{MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Decode(&Record{Value: []byte(c.text)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: got %v, want %s", c.text, err, c.want)
		}
	}
}

// TestRepeatedColumnsAreBounded has one value for very many rows.
func TestRepeatedColumnsAreBounded(t *testing.T) {
	text := `{"big":[` + strings.Repeat("0.1,", 2000) + `0.1],"ids":[` + strings.Repeat("1,", 10000) + `1]}`
	d, err := New(Config{Format: "json", Model: "m", Columns: Columns{ID: "ids[]", Logits: "big"}},
		Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.Decode(&Record{Value: []byte(text)}); err == nil || !strings.Contains(err.Error(), "too_large") {
		t.Errorf("got %v, want too_large", err)
	}
}

func TestMessagesStayWithinTheLimit(t *testing.T) {
	text := `{"ids":[` + strings.Repeat("7,", 5000) + `7],"p":[` + strings.Repeat("0.5,", 5000) + `0.5]}`
	d, err := New(Config{Format: "json", Model: "m", Columns: Columns{ID: "ids[]", Prob: "p[]"}},
		Options{MaxBytes: 1 << 15})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, b := range batches(t, d, &Record{Value: []byte(text)}) {
		rows += b.N
	}
	if rows != 5001 {
		t.Errorf("got %d rows of 5001", rows)
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]string{
		"a..b": "a name at each level", "a[": "[ without its ]", "a[x]": "a number from 0", "a[].b[]": "once at most",
		`"a`: "a quote without its end", "header:": "header:NAME", "record:value": "record:key",
		"a[]b": "a dot between",
	} {
		c := Config{Topic: "t", Format: "json", Model: "m", Columns: Columns{ID: path}}
		if _, err := New(c, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,null,true,"x\u00e9\n"]}`, `[]`, ` 0 `, `-`, `"\ud83d\ude00"`, `01`,
		`{"a":}`, `1.`, `[1,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		err := s.skip()
		if err == nil && (s.peek() != 0 || s.i < len(b)) {
			err = s.fail("the end")
		}
		if (err == nil) != json.Valid(b) && !strings.Contains(string(b), "[[[[[[") &&
			!strings.Contains(string(b), "{\"") {
			t.Fatalf("%q: got %v, encoding/json says %t", b, err, json.Valid(b))
		}
		var want string
		if json.Valid(b) && utf8.Valid(b) && b[0] == '"' && json.Unmarshal(b, &want) == nil {
			s = scanner{b: b}
			if got, _ := s.text(); string(got) != want {
				t.Fatalf("%q: got %q, want %q", b, got, want)
			}
		}
	})
}

// TestNumbersBetweenFloats reads numbers at, below and above the middle between two float32, with more and fewer digits
// than a float64 has.
func TestNumbersBetweenFloats(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		low := math.Float32frombits(rng.Uint32())
		if low != low || math.IsInf(float64(low), 0) {
			continue
		}
		high := math.Nextafter32(low, math.MaxFloat32)
		middle := (float64(low) + float64(high)) / 2
		below, above := math.Nextafter(middle, -1e300), math.Nextafter(middle, 1e300)
		for _, f := range []float64{float64(low), below, middle, above} {
			for _, form := range []byte{'e', 'f'} {
				for _, digits := range []int{-1, 3, 9, 15, 16, 17, 18, 19, 21} {
					sameFloat(t, strconv.FormatFloat(f, form, digits, 64))
				}
			}
		}
	}
}

// sameFloat wants what strconv makes of a number, to the last bit.
func sameFloat(t *testing.T, text string) {
	t.Helper()
	want, _ := strconv.ParseFloat(text, 32)
	if got := parseFloat32([]byte(text)); math.Float32bits(got) != math.Float32bits(float32(want)) {
		t.Fatalf("%s: got %v, want %v", text, got, want)
	}
}

// TestRecordsAllocateNothing wants no garbage of a producer's records, one like the other.
func TestRecordsAllocateNothing(t *testing.T) {
	d, err := New(Config{Format: "json"}, Options{Slices: []string{"region"}})
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{Value: recordJSON(1, 10)}
	if n := testing.AllocsPerRun(100, func() { _, err = d.Decode(r) }); n > 0 || err != nil {
		t.Fatalf("%g allocations a record: %v", n, err)
	}
}

func FuzzFloat32(f *testing.F) {
	f.Add("0.1")
	f.Add("16777217.00000000000000001e-3")
	f.Add("1.17549429e-38")
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
			t.Skip()
		}
		sameFloat(t, strings.TrimSpace(text))
	})
}

// recordJSON is n predictions of k classes as a list of objects.
func recordJSON(n, k int) []byte {
	b := []byte("[")
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":"req-`...)
		b = strconv.AppendInt(b, int64(100000+i), 10)
		b = append(b, `","ts":"2024-03-01T00:00:00.123Z","model":"resnet","version":"7","region":"north","logits":[`...)
		for j := range k {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(b, float64(float32(math.Sin(float64(i*k+j)))), 'g', -1, 32)
		}
		b = append(b, "]}"...)
	}
	return append(b, ']')
}
