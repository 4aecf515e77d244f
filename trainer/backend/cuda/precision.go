package cuda

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
)

// The precisions of products. Sums are float32 in all of them.
const (
	FP32 = "fp32"
	// TF32x3 has tensor cores multiply, each float32 as a sum of two TF32 numbers: a product is two (of float16
	// features) or three TF32 products. An epoch's loss is that of fp32 within LossBound.
	TF32x3 = "tf32x3"
	// BF16 rounds both operands to bfloat16, 8 bits: losses agree to about a thousandth.
	BF16 = "bf16"
)

// LossBound is how far an epoch's loss may be from the reference's, relative or absolute, whichever is larger, for a
// precision to be chosen by default: what the order of sums alone comes to.
const LossBound = 2e-6

// rates are floating-point operations of one multiprocessor in a cycle, by compute capability: of its ordinary cores
// in float32, and of its tensor cores in TF32 (0: it has none for that). bfloat16 is twice as fast as TF32.
var rates = map[[2]int]struct{ fp32, tf32 float64 }{
	{7, 5}: {128, 0}, {8, 0}: {128, 1024}, {8, 6}: {256, 256}, {8, 7}: {256, 512}, {8, 9}: {256, 256},
	{9, 0}: {256, 2048}, {10, 0}: {256, 4096}, {10, 3}: {256, 4096}, {12, 0}: {256, 256}, {12, 1}: {256, 256},
}

// tf32Products are those in place of one.
const tf32Products = 3

// CheckPrecision refuses what is no precision.
func CheckPrecision(p string) error {
	if p != "" && p != FP32 && p != TF32x3 && p != BF16 {
		return fmt.Errorf("precision %q, allowed are %s, %s and %s", p, FP32, TF32x3, BF16)
	}
	return nil
}

// choosePrecision takes what is wanted, or else the fastest whose loss agrees with fp32.
func (d *device) choosePrecision(wanted string) error {
	if err := CheckPrecision(wanted); err != nil {
		return err
	}
	switch {
	case d.blas == nil && wanted != "" && wanted != FP32:
		return unsupported("precision %s: there is no cuBLAS, and own kernels multiply in %s", wanted, FP32)
	case wanted != "":
		d.info.Precision = wanted
	case d.blas != nil && d.fastest(TF32x3) > d.fastest(FP32):
		d.info.Precision = TF32x3
	default:
		d.info.Precision = FP32
	}
	return nil
}

// fastest is how many operations of products in a precision one multiprocessor does in a cycle.
func (d *device) fastest(precision string) float64 {
	r := rates[[2]int{d.info.Major, d.info.Minor}]
	switch precision {
	case TF32x3:
		return r.tf32 / tf32Products
	case BF16:
		return 2 * r.tf32
	}
	return r.fp32
}

// findPeaks asks for what bounds the time of an epoch.
func (d *device) findPeaks() error {
	for _, a := range []struct {
		to *int32
		of int32
	}{
		{&d.processors, attributeProcessors}, {&d.kilohertz, attributeKilohertz},
		{&d.memoryKilohertz, attributeMemoryKilohertz}, {&d.memoryBits, attributeMemoryBits},
	} {
		if err := d.check("device attribute", d.DeviceAttribute(a.to, a.of, d.ordinal)); err != nil {
			return err
		}
	}
	return nil
}

// peaks are what bounds the time of an epoch; 0 where the device does not say.
type peaks struct{ processors, kilohertz, memoryKilohertz, memoryBits int32 }

// bytesPerSecond counts both edges of the memory's clock.
func (p peaks) bytesPerSecond() float64 {
	return 2e3 * float64(p.memoryKilohertz) * float64(p.memoryBits) / 8
}

// leastTimes are what products alone and memory alone need for an epoch of n rows.
func (s *session) leastTimes(n int) (products, memory time.Duration) {
	var operations, numbers float64
	rows, steps := float64(n), float64(data.Batches(n, s.p.Batch))
	for i, l := range s.layers {
		size := float64(l.in) * float64(l.out)
		operations += 2 * rows * size * 2 // outputs, and the gradient of the weights
		if i > 0 {
			operations += 2 * rows * size // the gradient of the inputs
		}
		// Inputs out, and in twice; outputs and their gradient thrice each; weights in, gradient out, update's five.
		numbers += rows*(3*float64(l.in)+6*float64(l.out)) + steps*7*size
	}
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	if rate := s.fastest(s.info.Precision) * float64(s.processors) * float64(s.kilohertz) * 1e3; rate > 0 {
		products = seconds(operations / rate)
	}
	if rate := s.bytesPerSecond(); rate > 0 {
		memory = seconds(4 * numbers / rate)
	}
	return products, memory
}

// timing is how long epochs took.
type timing struct {
	log    *slog.Logger
	epochs int
	rows   int
	took   time.Duration
}

// note counts an epoch.
func (t *timing) note(r backend.EpochResult, took time.Duration) {
	t.epochs++
	t.rows += r.Rows
	t.took += took
}

// tell logs the mean time of an epoch beside what it must take at least.
func (s *session) tell() {
	t := &s.timing
	if t.log == nil || t.epochs == 0 {
		return
	}
	rows := t.rows / t.epochs
	products, memory := s.leastTimes(rows)
	t.log.Info("epochs on the device", "epochs", t.epochs, "rows", rows, "precision", s.info.Precision,
		"took", t.took/time.Duration(t.epochs), "least_by_operations", products, "least_by_memory", memory)
}
