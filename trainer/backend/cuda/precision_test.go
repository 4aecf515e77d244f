package cuda

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
)

// TestPrecision: tf32x3 has the losses of fp32 within LossBound, bf16 has others, not by much; the log has times.
func TestPrecision(t *testing.T) {
	needStand(t)
	p, e := lossProblem("ce"), epochOf(90, 32)
	want, err := backend.Go{}.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := want.Epoch(e)
	if err != nil {
		t.Fatal(err)
	}
	for precision, bound := range map[string][2]float64{
		FP32: {0, LossBound}, TF32x3: {0, LossBound}, "": {0, LossBound}, BF16: {1e-5, 5e-3},
	} {
		var log bytes.Buffer
		s, err := (&Backend{Precision: precision, Log: slog.New(slog.NewTextHandler(&log, nil))}).Open(p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Epoch(e)
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		off := math.Abs(r.Loss-reference.Loss) / max(1, math.Abs(reference.Loss))
		t.Logf("%q: loss off by %.2g", precision, off)
		if off < bound[0] || off > bound[1] {
			t.Errorf("%q: loss off by %g, want %g to %g", precision, off, bound[0], bound[1])
		}
		for _, part := range []string{"epochs=1 rows=90", "took=", "least_by_operations=", "least_by_memory="} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log is without %q: %s", part, &log)
			}
		}
	}
}

// TestChoosePrecision: tensor cores where they are sooner done, and what own kernels cannot is refused.
func TestChoosePrecision(t *testing.T) {
	for capability, want := range map[[2]int]string{
		{7, 5}: FP32, {8, 0}: TF32x3, {8, 6}: FP32, {8, 9}: FP32, {9, 0}: TF32x3, {10, 0}: TF32x3, {12, 0}: FP32,
		{13, 0}: FP32, // not known
	} {
		d := &device{blas: &blas{}, info: Info{Major: capability[0], Minor: capability[1]}}
		if err := d.choosePrecision(""); err != nil || d.info.Precision != want {
			t.Errorf("%v: %s, %v; want %s", capability, d.info.Precision, err, want)
		}
	}
	own := &device{info: Info{Major: 9}}
	if err := own.choosePrecision(""); err != nil || own.info.Precision != FP32 {
		t.Errorf("own kernels: %s, %v; want %s", own.info.Precision, err, FP32)
	}
	if err := own.choosePrecision(BF16); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("own kernels: error %v, want ErrUnsupported", err)
	}
	if err := own.choosePrecision("fp8"); err == nil || !strings.Contains(err.Error(), "fp32, tf32x3 and bf16") {
		t.Errorf("error %v, want one with what is allowed", err)
	}
}
