package inputs

import (
	"math"
	"strconv"
	"syscall"
	"testing"
	"time"

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

func bench(b *testing.B, c Config, r *Record) {
	d, err := New(c, Options{Slices: []string{"region"}})
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
