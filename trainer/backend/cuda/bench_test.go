package cuda

import (
	"flag"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// The size of BenchmarkEpoch and the peaks of the device it is compared with; gpu_check.sh sets them.
var (
	benchRows     = flag.Int("rows", 20000, "rows of an epoch")
	benchFeatures = flag.Int("features", 64, "features of a row")
	benchClasses  = flag.Int("classes", 10, "classes")
	benchBatch    = flag.Int("batch", 1024, "rows of a mini-batch")
	benchLoss     = flag.String("loss", "ce", "loss")
	benchTFLOPS   = flag.Float64("tflops", 67, "the device's float32 peak in TFLOP/s, without tensor cores")
	benchGBs      = flag.Float64("gbs", 4800, "the device's memory bandwidth in GB/s")
)

// benchSet has features in float16, the same few thousand rows again and again, and labels that follow no rule.
func benchSet(n, d, k int) *data.Set {
	s := &data.Set{D: d, K: k, Half: make([]uint16, n*d), Y: make([]int32, n)}
	const period = 4099
	for i := range min(n, period) * d {
		s.Half[i] = uint16(i*40503>>3) & 0xb7ff // |x| < 0.5
	}
	for done := period * d; done < len(s.Half); done *= 2 {
		copy(s.Half[done:], s.Half[:done])
	}
	for i := range s.Y {
		s.Y[i] = int32(i * 7919 % k)
	}
	return s
}

// stepBytes is what a step of a linear head must move: features in, x out and twice in, logits and gradient each out
// and in (the logits thrice: bias, maximum and sum, gradient), weights in, their gradient out, and the update's five.
func stepBytes(n, d, k int) float64 {
	return float64(n*d)*(2+12) + 4*float64(n*k)*6 + 4*float64(d*k)*7
}

// BenchmarkEpoch times epochs of a linear head with float16 features, and says what bytes and operations alone take.
func BenchmarkEpoch(b *testing.B) {
	needDevice(b)
	n, d, k := *benchRows, *benchFeatures, *benchClasses
	p := backend.Problem{
		Train:  benchSet(n, d, k),
		Head:   head.FreshLinear(d, k, 1),
		Losses: []string{*benchLoss},
		Batch:  *benchBatch,
	}
	order := data.Shuffled(data.Rows(n), 1, 1)
	for _, c := range []struct {
		name   string
		b      *Backend
		masked bool
	}{
		{"found", new(Backend), false},
		{"own", &Backend{BLAS: OwnKernels}, false},
		{"fp32", &Backend{Precision: FP32}, false},
		{"tf32x3", &Backend{Precision: TF32x3}, false},
		{"tf32x3 masked", &Backend{Precision: TF32x3}, true},
		{"tf32x3 direct", &Backend{Precision: TF32x3, Direct: true}, false},
		{"tf32x3 streamed", &Backend{Precision: TF32x3, FeatureBytes: -1}, false},
		{"bf16", &Backend{Precision: BF16}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := c.b.Open(p)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			e := backend.EpochPlan{Rows: order, Batch: *benchBatch, LR: 0.01, Momentum: 0.9, WeightDecay: 5e-4}
			if c.masked {
				e.Mask = &backend.Mask{Keep: 0.6, Restrict: true}
			}
			// The first epoch compiles and records.
			if _, err := s.Epoch(e); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Epoch(e); err != nil {
					b.Fatal(err)
				}
			}
			steps := float64(data.Batches(n, *benchBatch))
			flops := 4 * float64(n) * float64(d) * float64(k)
			took := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(took*1e3, "ms/epoch")
			b.ReportMetric(took/steps*1e6, "us/step")
			b.ReportMetric(flops/took/1e12, "TFLOP/s")
			b.ReportMetric(flops/(*benchTFLOPS*1e12)*1e3, "ms-by-float32-FLOPs")
			b.ReportMetric(steps*stepBytes(*benchBatch, d, k)/(*benchGBs*1e9)*1e3, "ms-by-bytes")
		})
	}
}
