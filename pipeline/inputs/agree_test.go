package inputs

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio"
)

// sent is a row as its sender has it, whatever the format. A nil is a value that it does not send.
type sent struct {
	id       string
	probs    []float64
	ts       *int64 // μs
	label    *int64
	weight   *float64
	region   *string
	features []float64
}

func (s *sent) json() []byte {
	v := map[string]any{"model": "m", "version": "1", "id": s.id, "probs": s.probs}
	if s.ts != nil {
		v["ts"] = time.UnixMicro(*s.ts).UTC().Format(time.RFC3339Nano)
	}
	if s.label != nil {
		v["label"] = *s.label
	}
	if s.weight != nil {
		v["weight"] = *s.weight
	}
	if s.region != nil {
		v["region"] = *s.region
	}
	if s.features != nil {
		v["features"] = s.features
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *sent) cloudEvent() []byte {
	at := "" // an event has its time apart
	if s.ts != nil {
		at = time.UnixMicro(*s.ts).UTC().Format(time.RFC3339Nano)
	}
	return fmt.Appendf(nil, `{"specversion":"1.0","type":"t","source":"s","id":"e","time":%q,"data":%s}`, at, s.json())
}

const agreedAvro = `{"type":"record","name":"R","fields":[{"name":"model","type":"string"},
	{"name":"version","type":"string"},{"name":"id","type":"string"},
	{"name":"probs","type":{"type":"array","items":"double"}},
	{"name":"ts","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
	{"name":"label","type":["null","long"]},{"name":"weight","type":["null","double"]},
	{"name":"region","type":["null","string"]},
	{"name":"features","type":["null",{"type":"array","items":"double"}]}]}`

func (s *sent) avro() []byte {
	w := &avroWriter{}
	list := func(v []float64) {
		if len(v) > 0 {
			w.long(int64(len(v)))
		}
		for _, f := range v {
			w.double(f)
		}
		w.long(0)
	}
	some := func(is bool) bool {
		w.long(int64(map[bool]int{true: 1}[is]))
		return is
	}
	w.text("m")
	w.text("1")
	w.text(s.id)
	list(s.probs)
	if some(s.ts != nil) {
		w.long(*s.ts)
	}
	if some(s.label != nil) {
		w.long(*s.label)
	}
	if some(s.weight != nil) {
		w.double(*s.weight)
	}
	if some(s.region != nil) {
		w.text(*s.region)
	}
	if some(s.features != nil) {
		list(s.features)
	}
	return *w
}

const agreedProto = `syntax = "proto3"; import "google/protobuf/timestamp.proto";
message R { string model = 1; string version = 2; string id = 3; repeated double probs = 4;
	google.protobuf.Timestamp ts = 5; optional int64 label = 6; optional double weight = 7; optional string region = 8;
	repeated double features = 9; }`

func (s *sent) proto() []byte {
	text := func(b []byte, n protowire.Number, v string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	varint := func(b []byte, n protowire.Number, v int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
	}
	list := func(b []byte, n protowire.Number, v []float64) []byte {
		var all []byte
		for _, f := range v {
			all = protowire.AppendFixed64(all, math.Float64bits(f))
		}
		return text(b, n, string(all))
	}
	b := []byte{0} // the first message of the schema
	b = list(text(text(text(b, 1, "m"), 2, "1"), 3, s.id), 4, s.probs)
	if s.ts != nil {
		seconds := int64(math.Floor(float64(*s.ts) / 1e6))
		b = text(b, 5, string(varint(varint(nil, 1, seconds), 2, (*s.ts-seconds*1e6)*1e3)))
	}
	if s.label != nil {
		b = varint(b, 6, *s.label)
	}
	if s.weight != nil {
		b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), math.Float64bits(*s.weight))
	}
	if s.region != nil {
		b = text(b, 8, *s.region)
	}
	if s.features != nil {
		b = list(b, 9, s.features)
	}
	return b
}

// read is what a shard gets of a row.
type read struct {
	refused, reject, region  string
	ids                      []arrowio.ID
	scores, features, weight []float32
	ts                       []int64
	label                    []int32
}

func readOf(t *testing.T, format string, value []byte) (out read) {
	t.Helper()
	o := Options{Slices: []string{"region"}, MaxBytes: 1 << 20}
	switch format {
	case "avro":
		o.Schemas = shelf{{Type: "AVRO", Text: agreedAvro}}
	case "protobuf":
		o.Schemas = shelf{{Type: "PROTOBUF", Text: agreedProto}}
	}
	d, err := New(Config{Format: format}, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{Value: value, Time: 5}
	if o.Schemas != nil {
		r.Value = asFramed(value)
	}
	if err := d.Ready(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	ms, err := d.Decode(r)
	if err != nil {
		return read{refused: err.Error()}
	}
	if len(ms) != 1 {
		t.Fatalf("%s: %d messages", format, len(ms))
	}
	bs, err := arrowio.NewDecoder(arrowio.Options{Slices: o.Slices}).Decode(ms[0], arrowio.Origin{Time: r.Time},
		d.cfg.Kind())
	if err != nil {
		return read{refused: err.Error()}
	}
	b := bs[0]
	if len(bs) != 1 || b.N != 1 {
		t.Fatalf("%s: got %+v", format, bs)
	}
	out = read{reject: fmt.Sprint(b.Reject), ids: slices.Clone(b.IDs), scores: slices.Clone(b.Scores),
		features: slices.Clone(b.Features), ts: slices.Clone(b.TS), label: slices.Clone(b.Label),
		weight: slices.Clone(b.Weight)}
	for _, c := range b.Slices {
		if len(c.Index) > 0 && c.Index[0] >= 0 {
			out.region = c.Values[c.Index[0]]
		}
	}
	return out
}

// TestFormatsAgree: the same row gives a shard the same, or is refused in the same words, by whichever format it came.
func TestFormatsAgree(t *testing.T) {
	row := func(change func(*sent)) sent {
		ts, label := int64(1709251200250000), int64(1)
		s := sent{id: "a", probs: []float64{.25, .75}, ts: &ts, label: &label}
		change(&s)
		return s
	}
	ptr := func(v float64) *float64 { return &v }
	rows := map[string]sent{
		"plain": row(func(*sent) {}),
		"all": row(func(s *sent) {
			region := "süd"
			s.weight, s.region, s.features = ptr(2.5), &region, []float64{1, -2.5e-3, 3e30}
		}),
		"nothing optional":  row(func(s *sent) { s.label = nil }),
		"no id":             row(func(s *sent) { s.id = "" }),
		"no scores":         row(func(s *sent) { s.probs = []float64{} }),
		"one score":         row(func(s *sent) { s.probs = []float64{.5} }),
		"no probabilities":  row(func(s *sent) { s.probs = []float64{.25, .7} }),
		"below 0":           row(func(s *sent) { s.probs = []float64{-.25, 1.25} }),
		"denormal":          row(func(s *sent) { s.probs = []float64{5e-324, 1} }),
		"beyond float32":    row(func(s *sent) { s.probs = []float64{1e300, 0} }),
		"third label":       row(func(s *sent) { *s.label = 2 }),
		"negative label":    row(func(s *sent) { *s.label = -3 }),
		"wide label":        row(func(s *sent) { *s.label = 1<<53 + 1 }),
		"least label":       row(func(s *sent) { *s.label = math.MinInt64 }),
		"weight 0":          row(func(s *sent) { s.weight = ptr(0) }),
		"weight below 0":    row(func(s *sent) { s.weight = ptr(-1) }),
		"heavy":             row(func(s *sent) { s.weight = ptr(1e300) }),
		"light":             row(func(s *sent) { s.weight = ptr(1e-300) }),
		"before 1970":       row(func(s *sent) { *s.ts = -1 }),
		"at 1970":           row(func(s *sent) { *s.ts = 0 }),
		"empty region":      row(func(s *sent) { region := ""; s.region = &region }),
		"region of control": row(func(s *sent) { region := "\x00\n\""; s.region = &region }),
		"wide features":     row(func(s *sent) { s.features = []float64{1e39} }),
		"no features":       row(func(s *sent) { s.features = []float64{} }),
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		rows[fmt.Sprint("random ", i)] = row(func(s *sent) {
			p := r.Float64()
			s.probs = []float64{p, 1 - p}
			*s.ts, *s.label = r.Int64N(4e15)-1e15, r.Int64N(4)-1
			s.weight = ptr(math.Exp(r.NormFloat64() * 20))
			s.features = []float64{r.NormFloat64() * math.Exp(r.NormFloat64()*30), r.NormFloat64()}
		})
	}
	for name, s := range rows {
		want := readOf(t, "json", s.json())
		for format, value := range map[string][]byte{"cloudevents": s.cloudEvent(), "avro": s.avro(),
			"protobuf": s.proto()} {
			if got := readOf(t, format, value); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: by %s\n%+v, by json\n%+v", name, format, got, want)
			}
		}
	}
}
