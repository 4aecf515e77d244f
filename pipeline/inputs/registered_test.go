package inputs

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// shelf is a registry whose schemas are numbered from 0.
type shelf []Schema

var errAway = errors.New("the registry is away")

func (s shelf) Schema(_ context.Context, id uint32) (Schema, error) {
	if s == nil {
		return Schema{}, errAway
	}
	if int(id) >= len(s) {
		return Schema{}, ErrNoSchema
	}
	return s[id], nil
}

// asFramed puts the number of schema 0 before a value.
func asFramed(value []byte) []byte { return append([]byte{0, 0, 0, 0, 0}, value...) }

// registeredRows decodes a record with a schema.
func registeredRows(t testing.TB, c Config, s Schema, value []byte) []*arrowio.Batch {
	t.Helper()
	d, err := New(c, Options{Slices: []string{"region"}, MaxBytes: 1 << 20, Schemas: shelf{s}})
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{Value: asFramed(value), Time: 5}
	if err := d.Ready(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return batches(t, d, r, "region")
}

// TestASchemaThatComesLater: a number that the registry does not have is asked for again.
func TestASchemaThatComesLater(t *testing.T) {
	late := make(shelf, 0, 1)
	d, err := New(Config{Format: "avro", Model: "m", Columns: Columns{Prob: "p"}},
		Options{MaxBytes: 1 << 20, Schemas: &late})
	if err != nil {
		t.Fatal(err)
	}
	var value avroWriter
	value.float(.25)
	r := &Record{Value: asFramed(value), Time: 5}
	for _, want := range []string{"the registry has none of this number", ""} {
		if err := d.Ready(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decode(r); want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		late = append(late, Schema{Type: "AVRO", Text: `{"type":"record","name":"R","fields":[{"name":"p",` +
			`"type":"float"}]}`})
	}
}

// useless is a registry none of whose schemas can be used.
type useless struct{}

func (useless) Schema(context.Context, uint32) (Schema, error) {
	return Schema{}, fmt.Errorf("%w: it refers to everything", ErrBadSchema)
}

// TestASchemaOfNoUse: its records are refused, and wait for nothing.
func TestASchemaOfNoUse(t *testing.T) {
	d, err := New(Config{Format: "avro", Model: "m", Columns: Columns{Prob: "p"}}, Options{Schemas: useless{}})
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{Value: asFramed(nil)}
	if err := d.Ready(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	const want = "schema: schema 0 cannot be used: it refers to everything"
	if _, err := d.Decode(r); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// avroWriter writes Avro by hand.
type avroWriter []byte

func (w *avroWriter) long(n int64)  { *w = binary.AppendVarint(*w, n) }
func (w *avroWriter) text(s string) { w.long(int64(len(s))); *w = append(*w, s...) }
func (w *avroWriter) float(f float32) {
	*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(f))
}
func (w *avroWriter) double(f float64) {
	*w = binary.LittleEndian.AppendUint64(*w, math.Float64bits(f))
}

const avroSchema = `{"type":"record","name":"Served","namespace":"a.b","fields":[
	{"name":"extra","type":{"type":"map","values":["null",{"type":"record","name":"Pair","fields":[
		{"name":"x","type":"int"},{"name":"more","type":{"type":"array","items":"Pair"}}]}]}},
	{"name":"request","type":{"type":"record","name":"Request","fields":[{"name":"id","type":"string"}]}},
	{"name":"ts","type":{"type":"long","logicalType":"timestamp-millis"}},
	{"name":"model","type":["null","string"],"default":null},
	{"name":"region","type":{"type":"enum","name":"Region","symbols":["north","south"]}},
	{"name":"mac","type":{"type":"fixed","name":"Mac","size":2}},
	{"name":"rows","type":{"type":"array","items":{"type":"record","name":"Row","fields":[
		{"name":"probs","type":{"type":"array","items":["double","float"]}},
		{"name":"label","type":["null","int"]},{"name":"again","type":["null","a.b.Request"]}]}}}]}`

func avroValue(sized bool) []byte {
	w := &avroWriter{}
	pair := &avroWriter{}
	pair.text("k")
	pair.long(1)
	pair.long(7)
	pair.long(0)
	if w.long(1); sized {
		*w = (*w)[:0]
		w.long(-1)
		w.long(int64(len(*pair)))
	}
	*w = append(*w, *pair...)
	w.long(0)
	w.text("q")
	w.long(1709251200250)
	w.long(1)
	w.text("iris")
	w.long(1)
	*w = append(*w, "xy"...)
	for i, p := range [][2]float64{{.25, .75}, {1, 0}} {
		w.long(1)
		w.long(2)
		w.long(0)
		w.double(p[0])
		w.long(1)
		w.float(float32(p[1]))
		w.long(0)
		w.long(int64(i))
		if i == 1 {
			w.long(1)
		}
		w.long(0)
	}
	w.long(0)
	return *w
}

func TestAvro(t *testing.T) {
	c := Config{Format: "avro", Columns: Columns{ID: "request.id", Probs: "rows[].probs", Label: "rows[].label"}}
	for _, sized := range []bool{false, true} {
		bs := registeredRows(t, c, Schema{Type: "AVRO", Text: avroSchema}, avroValue(sized))
		isRows(t, bs, "q/0", "q/1")
		b := bs[0]
		if b.TS[0] != 1709251200250000000 || b.Label[0] != -1 || b.Label[1] != 1 ||
			b.Slices[0].Values[b.Slices[0].Index[0]] != "south" {
			t.Errorf("got %+v", b)
		}
	}
	// what the schema refers to lies in schemas of their own, and one column may be inside of a map
	s := Schema{Type: "AVRO", Text: `{"type":"record","name":"R","fields":[{"name":"m","type":{"type":"map",` +
		`"values":"x.Scores"}}]}`, Refers: []NamedSchema{{"x.Scores",
		`{"type":"record","name":"Scores","namespace":"x","fields":[{"name":"p","type":"float"}]}`}}}
	w := &avroWriter{}
	w.long(2)
	w.text("other")
	w.float(.5)
	w.text("k")
	w.float(.75)
	w.long(0)
	b := registeredRows(t, Config{Format: "avro", Model: "m", Columns: Columns{Prob: "m.k.p", ID: "record:time"}}, s,
		*w)[0]
	if b.K != 2 || b.Scores[1] != .75 {
		t.Errorf("got %+v", b)
	}
}

// protoSource is a schema as people write it.
const protoSource = `syntax = "proto3";
package a.b;
import "google/protobuf/timestamp.proto";
import "other.proto";
message Unused { string x = 1; }
message Served {
  message Row { repeated double probs = 1; int32 label = 2; optional int32 second = 3; }
  string id = 1;
  google.protobuf.Timestamp ts = 2;
  oneof which { string model = 3; int64 number = 4; }
  c.Region region = 5;
  repeated Row rows = 6;
  map<string, Row> by = 7;
  repeated sint32 deltas = 8;
}`

var otherProto = NamedSchema{"other.proto", `syntax = "proto3"; package c; enum Region { north = 0; south = 1; }`}

// protoDescriptor is the same, as clients register what protoc makes of it.
func protoDescriptor() string {
	const text, number, message, enum, sint = descriptorpb.FieldDescriptorProto_TYPE_STRING,
		descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE,
		descriptorpb.FieldDescriptorProto_TYPE_ENUM, descriptorpb.FieldDescriptorProto_TYPE_SINT32
	const double = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
	type field = descriptorpb.FieldDescriptorProto
	f := func(name string, n int32, kind descriptorpb.FieldDescriptorProto_Type, of string, repeated bool) *field {
		f := &field{Name: &name, Number: &n, Type: &kind}
		if of != "" {
			f.TypeName = &of
		}
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		f.Label = &label
		return f
	}
	one := proto.Int32(0)
	model, wide := f("model", 3, text, "", false), f("number", 4, descriptorpb.FieldDescriptorProto_TYPE_INT64, "",
		false)
	model.OneofIndex, wide.OneofIndex = one, one
	second := f("second", 3, number, "", false)
	second.OneofIndex = one
	file := &descriptorpb.FileDescriptorProto{Package: proto.String("a.b"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Unused")}, {Name: proto.String("Served"),
			Field: []*field{f("id", 1, text, "", false), f("ts", 2, message, ".google.protobuf.Timestamp", false),
				model, wide, f("region", 5, enum, ".c.Region", false), f("rows", 6, message, ".a.b.Served.Row", true),
				f("by", 7, message, ".a.b.Served.ByEntry", true), f("deltas", 8, sint, "", true)},
			NestedType: []*descriptorpb.DescriptorProto{
				{Name: proto.String("Row"), Field: []*field{f("probs", 1, double, "", true),
					f("label", 2, number, "", false), second}},
				{Name: proto.String("ByEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
					Field: []*field{f("key", 1, text, "", false), f("value", 2, message, ".a.b.Served.Row", false)}},
			}}}}
	b, err := proto.Marshal(file)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// protoValue is a message of the second type: fields out of order, lists packed and not, and a message in two parts.
func protoValue() []byte {
	text := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	varint := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	doubles := func(packed bool, v ...float64) (b []byte) {
		var all []byte
		for _, f := range v {
			if !packed {
				b = protowire.AppendFixed64(protowire.AppendTag(b, 1, protowire.Fixed64Type), math.Float64bits(f))
			}
			all = protowire.AppendFixed64(all, math.Float64bits(f))
		}
		if packed {
			b = text(b, 1, all)
		}
		return b
	}
	b := []byte{2, 2} // one index: 1
	b = text(b, 6, doubles(true, .25, .75))
	b = text(b, 3, []byte("iris"))
	b = text(b, 2, varint(nil, 1, 1709251200))
	b = text(b, 7, text(text(nil, 1, []byte("k")), 2, varint(nil, 3, 9)))
	b = text(b, 2, varint(nil, 2, 250e6))
	b = varint(b, 5, 1)
	b = text(b, 6, varint(doubles(false, 1, 0), 2, 1))
	b = text(b, 8, []byte{3, 4})
	return text(b, 1, []byte("q"))
}

func TestProtobuf(t *testing.T) {
	c := Config{Format: "protobuf", Columns: Columns{Probs: "rows[].probs", Label: "rows[].label",
		Features: "deltas", Served: "by.k.second"}}
	for name, text := range map[string]string{"source": protoSource, "descriptor": protoDescriptor()} {
		t.Run(name, func(t *testing.T) {
			s := Schema{Type: "PROTOBUF", Text: text, Refers: []NamedSchema{otherProto}}
			bs := registeredRows(t, c, s, protoValue())
			isRows(t, bs, "q/0", "q/1")
			b := bs[0]
			// a label of 0 is not written: it is the zero value of its field
			if b.TS[1] != 1709251200250000000 || b.Label[0] != 0 || b.Label[1] != 1 || b.Served[0] != 9 ||
				b.Slices[0].Values[b.Slices[0].Index[0]] != "south" || !slices.Equal(b.Features,
				[]float32{-2, 2, -2, 2}) {
				t.Errorf("got %+v", b)
			}
		})
	}
}

// TestSchemaThatCannotBeHad: while the registry is away the record waits, and one whose schema is not there, or no
// schema of the format, is refused.
func TestSchemaThatCannotBeHad(t *testing.T) {
	c := Config{Format: "avro", Model: "m", Columns: Columns{Prob: "p"}}
	r := &Record{Value: asFramed([]byte{0, 0, 0, 0})}
	for _, x := range []struct {
		name    string
		schemas shelf
		want    string
	}{
		{"away", nil, "away"},
		{"unknown", shelf{}, "schema: schema 0: the registry has none of this number"},
		{"of another format", shelf{{Type: "JSON"}}, "is of type JSON, the input's format takes AVRO"},
		{"none", shelf{{Type: "AVRO", Text: `{"type":"record","name":"R","fields":[{"name":"p","type":"R2"}]}`}},
			`field "p": type "R2" is not declared`},
		{"good", shelf{{Type: "AVRO", Text: `{"type":"record","name":"R","fields":[{"name":"p","type":"float"}]}`}},
			""},
	} {
		d, err := New(c, Options{Schemas: x.schemas})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Ready(t.Context(), r)
		if away := errors.Is(err, errAway); away != (x.name == "away") {
			t.Errorf("%s: %v", x.name, err)
		}
		if err == nil {
			_, err = d.Decode(r)
		}
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %s", x.name, err, x.want)
		}
	}
	d, err := New(c, Options{Schemas: shelf{}})
	if err != nil {
		t.Fatal(err)
	}
	var fe *wire.FormatError
	if _, err := d.Decode(&Record{Value: []byte(`{"p":1}`)}); !errors.As(err, &fe) || fe.Reason != NotFramed {
		t.Errorf("got %v", err)
	}
	tombstone := &Record{Key: []byte("a")} // what change data capture sends of a deleted row
	if err := d.Ready(t.Context(), tombstone); err != nil {
		t.Errorf("a tombstone: %v", err)
	}
	if messages, err := d.Decode(tombstone); err != nil || len(messages) != 0 {
		t.Errorf("a tombstone: got %d messages, %v", len(messages), err)
	}
}

// TestHostileSchemasAreBounded: neither a schema that calls itself nor lists of values without bytes cost more than the
// record's bytes are worth.
func TestHostileSchemasAreBounded(t *testing.T) {
	long := &avroWriter{}
	long.long(math.MaxInt64)
	for name, x := range map[string]struct {
		schema string
		value  []byte
	}{
		"a list of nulls": {`{"type":"array","items":"null"}`, *long},
		"itself": {`{"type":"record","name":"R","fields":[{"name":"a","type":"R"},{"name":"b","type":"R"}]}`,
			nil},
		"deep": {`{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}`,
			[]byte(strings.Repeat("\x02", 4000))},
		"a list of itself": {`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"R"}}]}`,
			[]byte(strings.Repeat("\x02", 4000))},
	} {
		for _, path := range []string{"p", "a.a.p", "a[].p"} {
			d, err := New(Config{Format: "avro", Model: "m", Columns: Columns{Prob: path}},
				Options{Schemas: shelf{{Type: "AVRO", Text: x.schema}}})
			if err != nil {
				t.Fatal(err)
			}
			r := &Record{Value: asFramed(x.value)}
			if err := d.Ready(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			var fe *wire.FormatError
			if _, err := d.Decode(r); !errors.As(err, &fe) || fe.Reason == wire.Panicked {
				t.Errorf("%s, %s: %v", name, path, err)
			}
		}
	}
}

func FuzzAvro(f *testing.F) {
	f.Add(avroSchema, avroValue(false))
	f.Add(avroSchema, avroValue(true))
	f.Add(`{"type":"array","items":{"type":"record","name":"R","fields":[{"name":"id","type":"long"},`+
		`{"name":"probs","type":{"type":"array","items":"float"}},{"name":"label","type":"boolean"}]}}`,
		[]byte{2, 4, 0, 1, 0})
	f.Fuzz(func(t *testing.T, schema string, value []byte) {
		registeredFuzz(t, Schema{Type: "AVRO", Text: schema}, asFramed(value))
	})
}

func FuzzProtobuf(f *testing.F) {
	f.Add(protoSource, protoValue())
	f.Add(protoDescriptor(), protoValue())
	f.Fuzz(func(t *testing.T, schema string, value []byte) {
		registeredFuzz(t, Schema{Type: "PROTOBUF", Text: schema, Refers: []NamedSchema{otherProto}}, asFramed(value))
	})
}

func registeredFuzz(t *testing.T, s Schema, value []byte) {
	format := strings.ToLower(s.Type)
	fuzzed[format] = []Config{
		{Format: format},
		{Format: format, Rows: "labels", Classes: []string{"a", "b"}},
		{Format: format, Columns: Columns{ID: "request.id", Probs: "rows[].probs", Label: "rows[].label"}},
		{Format: format, Model: "m", Columns: Columns{Logits: "by.k.probs", Features: "deltas", TS: "extra.k.x",
			Weight: "rows[1].label"}},
	}
	checkWith(t, format, &Record{Value: value}, shelf{s})
}

// TestSchemasOfRowsThatGoTogether: what the schema of a row said is known until the rows that go with it are through,
// however many other schemas they name.
func TestSchemasOfRowsThatGoTogether(t *testing.T) {
	schemas := make(shelf, 4*maxCompiled)
	for i := range schemas {
		schemas[i] = Schema{Type: "AVRO", Text: `{"type":"record","name":"r","fields":[{"name":"id","type":"string"},` +
			`{"name":"model","type":"string"},{"name":"prob","type":"float"}]}`}
	}
	d, err := New(Config{Format: "avro"}, Options{Schemas: schemas})
	if err != nil {
		t.Fatal(err)
	}
	record := func(schema int) *Record {
		value := append([]byte{0, 0, 0, byte(schema >> 8), byte(schema)}, "\x02a\x02m\x00\x00\x00\x3f"...)
		r := &Record{Value: value, Time: 1}
		if err := d.Ready(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	next := 1
	for round := range 3 {
		for range maxCompiled - 1 {
			record(next)
			next++
		}
		held := record(0)
		record(next) // one too many
		next++
		if _, err := d.Decode(held); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}
