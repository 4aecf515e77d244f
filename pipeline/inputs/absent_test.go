package inputs

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// TestAbsentAndNullTimes: in every format a time that is not there is the record's, and a null one rejects its row and
// no other, whatever other rows of the record have.
func TestAbsentAndNullTimes(t *testing.T) {
	const fields = `"id":"a","model":"m","probs":[0.5,0.5]`
	json, nested := Config{Format: "json"}, Config{Format: "json", Columns: Columns{TS: "at.ts"}}
	items := Config{Format: "json", Model: "m", Columns: Columns{ID: "id", TS: "rows[].ts", Probs: "rows[].probs"}}
	header := Config{Format: "json", Columns: Columns{TS: "header:t"}}
	labels := Config{Format: "json", Rows: "labels"}
	event := Config{Format: "cloudevents"}
	avro := Config{Format: "avro", Model: "m", Columns: Columns{ID: "record:key", Prob: "p"}}
	proto := Config{Format: "protobuf", Model: "m", Columns: Columns{ID: "record:key", Prob: "p"}}
	const schemaOfAvro = `{"type":"record","name":"R","fields":[{"name":"p","type":"float"}`
	avroWithout := &Schema{Type: "AVRO", Text: schemaOfAvro + `]}`}
	avroWith := &Schema{Type: "AVRO", Text: schemaOfAvro + `,{"name":"ts","type":["null","long"]}]}`}
	protoOf := func(field string) *Schema {
		return &Schema{Type: "PROTOBUF", Text: `syntax = "proto3"; message R { float p = 1; ` + field + ` }`}
	}
	half := func(more ...byte) []byte { // as Avro writes it
		w := &avroWriter{}
		w.float(.5)
		return asFramed(append(*w, more...))
	}
	message := asFramed(protowire.AppendFixed32([]byte{0, 1<<3 | 5}, 0x3f000000))
	const own, null = 7e9, -1 // what a row has: 7 s, null, or, without either, the record's time
	for name, x := range map[string]struct {
		c       Config
		schema  *Schema
		value   string
		headers []pipeline.Header
		want    []int64
	}{
		"absent":             {c: json, value: `{` + fields + `}`, want: []int64{5}},
		"null":               {c: json, value: `{"ts":null,` + fields + `}`, want: []int64{null}},
		"of several objects": {c: json, value: `{` + fields + `}{"ts":7,` + fields + `}`, want: []int64{5, own}},
		"a null among them":  {c: json, value: `{` + fields + `}{"ts":null,` + fields + `}`, want: []int64{5, null}},
		"a null before":      {c: json, value: `[{"ts":null,` + fields + `},{` + fields + `}]`, want: []int64{null, 5}},
		"of all": {c: json, value: `[{"ts":null,` + fields + `},{"ts":7,` + fields + `}]`,
			want: []int64{null, own}},
		"path absent":         {c: nested, value: `{"at":{},` + fields + `}`, want: []int64{5}},
		"path null":           {c: nested, value: `{"at":{"ts":null},` + fields + `}`, want: []int64{null}},
		"nothing at its path": {c: nested, value: `{"at":null,` + fields + `}`, want: []int64{5}},
		"items": {c: items, value: `{"id":"a","rows":[{"probs":[0,1]},{"probs":[0,1],"ts":null},` +
			`{"probs":[0,1],"ts":7}]}`,
			want: []int64{5, null, own}},
		"header absent": {c: header, value: `{` + fields + `}`, want: []int64{5}},
		"header null": {c: header, value: `{` + fields + `}`, headers: []pipeline.Header{{Key: "t"}},
			want: []int64{null}},
		"labels": {c: labels, value: `{"id":"a","label":1}{"id":"b","label":1,"ts":null}`, want: []int64{5, null}},
		// CloudEvents takes a null attribute for one that is not there.
		"attribute null":  {c: event, value: `{"type":"x","time":null,"data":{` + fields + `}}`, want: []int64{5}},
		"Avro absent":     {c: avro, schema: avroWithout, value: string(half()), want: []int64{5}},
		"Avro null":       {c: avro, schema: avroWith, value: string(half(0)), want: []int64{null}},
		"Avro":            {c: avro, schema: avroWith, value: string(half(2, 14)), want: []int64{own}},
		"Protobuf absent": {c: proto, schema: protoOf(""), value: string(message), want: []int64{5}},
		// Protobuf has no null.
		"Protobuf unset": {c: proto, schema: protoOf("optional int64 ts = 2;"), value: string(message),
			want: []int64{5}},
		"Protobuf zero": {c: proto, schema: protoOf("int64 ts = 2;"), value: string(message), want: []int64{5}},
		"Protobuf": {c: proto, schema: protoOf("int64 ts = 2;"), value: string(message) + "\x10\x07",
			want: []int64{own}},
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			if x.schema != nil {
				o.Schemas = shelf{*x.schema}
			}
			d, err := New(x.c, o)
			if err != nil {
				t.Fatal(err)
			}
			r := &Record{Key: []byte("k"), Value: []byte(x.value), Headers: x.headers, Time: 5}
			if err := d.Ready(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, b := range batches(t, d, r) {
				for i, at := range b.TS {
					if b.Reject != nil && b.Reject[i] == arrowio.NullRow {
						at = null
					}
					got = append(got, at)
				}
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("got %v, want %v", got, x.want)
			}
		})
	}
}
