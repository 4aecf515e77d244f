package inputs

import (
	"math"
	"strconv"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio"
)

// BenchmarkFormats makes messages in Arrow of records of n rows of k classes. CPU-MB/s is bytes of records by CPU time,
// user and system, so that others on the machine do not count.
func BenchmarkFormats(b *testing.B) {
	const k = 10
	for _, n := range []int{1, 100, 1000} {
		name := "/" + strconv.Itoa(n)
		b.Run("json"+name, func(b *testing.B) {
			bench(b, Config{Format: "json"}, &Record{Value: recordJSON(n, k)})
		})
		b.Run("avro"+name, func(b *testing.B) {
			benchOf(b, Config{Format: "avro"}, shelf{{Type: "AVRO", Text: benchAvro}},
				&Record{Value: asFramed(recordAvro(n, k))})
		})
		b.Run("protobuf"+name, func(b *testing.B) {
			c := Config{Format: "protobuf", Columns: Columns{ID: "rows[].id", TS: "rows[].ts", Logits: "rows[].logits"}}
			benchOf(b, c, shelf{{Type: "PROTOBUF", Text: benchProto}}, &Record{Value: asFramed(recordProto(n, k))})
		})
		b.Run("v2"+name, func(b *testing.B) {
			bench(b, Config{Format: "v2", Columns: Columns{Logits: "outputs.logits"}}, &Record{Value: v2JSON(n, k)})
		})
		b.Run("v2-raw"+name, func(b *testing.B) {
			head := `{"model_name":"m","id":"q","outputs":[{"name":"logits","datatype":"FP32",` +
				`"shape":[` + strconv.Itoa(n) + `,10],"parameters":{"binary_data_size":` + strconv.Itoa(4*n*k) + `}}]}`
			r := &Record{Value: append([]byte(head), float32s(scores(n, k)...)...),
				Headers: headers(binaryHeader, strconv.Itoa(len(head)))}
			bench(b, Config{Format: "v2", Columns: Columns{Logits: "outputs.logits"}}, r)
		})
		b.Run("arrow"+name, func(b *testing.B) {
			c := arrowio.Columns{Model: "m", Version: "7", K: k, Logits: scores(n, k)}
			for i := range n {
				c.IDs, c.TS = append(c.IDs, "req-"+strconv.Itoa(100000+i)), append(c.TS, 1709251200000000000)
			}
			value, err := arrowio.EncodePredictions(c)
			if err != nil {
				b.Fatal(err)
			}
			d := arrowio.NewDecoder(arrowio.Options{})
			measure(b, len(value), func() error {
				bs, err := d.Decode(value, arrowio.Origin{}, arrowio.Predictions)
				for _, batch := range bs {
					batch.Release()
				}
				return err
			})
		})
	}
}

func bench(b *testing.B, c Config, r *Record) { benchOf(b, c, nil, r) }

func benchOf(b *testing.B, c Config, schemas shelf, r *Record) {
	d, err := New(c, Options{Slices: []string{"region"}, Schemas: schemas})
	if err == nil {
		err = d.Ready(b.Context(), r)
	}
	if err != nil {
		b.Fatal(err)
	}
	measure(b, len(r.Value), func() error { _, err := d.Decode(r); return err })
}

func measure(b *testing.B, bytes int, do func() error) {
	b.ReportAllocs()
	before, n := cpuTime(b), 0
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(bytes*n)/(cpuTime(b)-before).Seconds()/1e6, "CPU-MB/s")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func scores(n, k int) []float32 {
	out := make([]float32, n*k)
	for i := range out {
		out[i] = float32(math.Sin(float64(i)))
	}
	return out
}

func v2JSON(n, k int) []byte {
	b := []byte(`{"model_name":"m","id":"q","outputs":[{"name":"logits","datatype":"FP32","shape":[` + strconv.Itoa(n) +
		`,10],"data":[`)
	for i, f := range scores(n, k) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(f), 'g', -1, 32)
	}
	return append(b, "]}]}"...)
}

const benchAvro = `{"type":"array","items":{"type":"record","name":"R","fields":[{"name":"id","type":"string"},
	{"name":"ts","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"model","type":"string"},
	{"name":"version","type":["null","string"]},
	{"name":"region","type":{"type":"enum","name":"E","symbols":["eu","us"]}},
	{"name":"logits","type":{"type":"array","items":"float"}}]}}`

func recordAvro(n, k int) []byte {
	w := &avroWriter{}
	w.long(int64(n))
	z := scores(n, k)
	for i := range n {
		w.text("req-" + strconv.Itoa(100000+i))
		w.long(1709251200000000)
		w.text("m")
		w.long(1)
		w.text("7")
		w.long(int64(i % 2))
		w.long(int64(k))
		for _, f := range z[i*k : (i+1)*k] {
			w.float(f)
		}
		w.long(0)
	}
	w.long(0)
	return *w
}

const benchProto = `syntax = "proto3"; message Batch {
	message Row { string id = 1; int64 ts = 2; repeated float logits = 3; }
	string model = 1; string version = 2; string region = 3; repeated Row rows = 4; }`

func recordProto(n, k int) []byte {
	text := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	b := text(text(text([]byte{0}, 1, []byte("m")), 2, []byte("7")), 3, []byte("eu"))
	z := scores(n, k)
	for i := range n {
		row := text(nil, 1, []byte("req-"+strconv.Itoa(100000+i)))
		row = protowire.AppendVarint(protowire.AppendTag(row, 2, protowire.VarintType), 1709251200000000)
		b = text(b, 4, text(row, 3, float32s(z[i*k:(i+1)*k]...)))
	}
	return b
}
