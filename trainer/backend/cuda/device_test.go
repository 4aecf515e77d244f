package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
)

// tolerance: exponentials are ex2.approx, 2 units in the last place, and sums have another order than the reference's.
var tolerance = conformance.Tolerance{Params: 2e-5, Loss: LossBound}

// needDevice skips where no driver can be loaded, or no device is there.
func needDevice(t testing.TB) {
	t.Helper()
	if info, err := new(Backend).Describe(); errors.Is(err, backend.ErrUnsupported) {
		t.Skipf("not run: %v; make cuda-fake runs it on a stand-in", err)
	} else if err != nil {
		t.Fatal(err)
	} else {
		t.Logf("device: %+v", info)
	}
}

// stand is the stand-in library, which faults can be injected into.
type stand struct {
	Set func(key string, value int64)  `c:"fakecuda_set"`
	Get func(key string) (value int64) `c:"fakecuda_get"`
	// Reached fills in, for each line of the image, whether an instruction of it ran since the last call.
	Reached func(to *byte, n int64) `c:"fakecuda_reached"`
}

// needStand skips where the driver is a real one.
func needStand(t testing.TB) *stand {
	t.Helper()
	needDevice(t)
	handle, _, err := open(driverNames(""))
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{}
	if err := bind(handle, s); err != nil {
		t.Skip("not run: the driver is a real one, and no fault can be injected; make cuda-fake runs it")
	}
	return s
}

// set changes a setting of the stand-in for the test.
func (s *stand) set(t testing.TB, key string, value int64) {
	before := s.Get(key)
	s.Set(key, value)
	t.Cleanup(func() { s.Set(key, before) })
}

// TestConformance runs every case with features on the device, streamed, and launch by launch; with own products and
// with cuBLAS where there is one.
func TestConformance(t *testing.T) {
	needDevice(t)
	for name, b := range map[string]*Backend{
		"found":    new(Backend), // cuBLAS where there is one, in the precision that it chooses
		"fp32":     {Precision: FP32},
		"own":      {BLAS: OwnKernels, FeatureBytes: 2000}, // some sets fit
		"streamed": {FeatureBytes: -1},
		"direct":   {Direct: true, BLAS: OwnKernels},
	} {
		t.Run(name, func(t *testing.T) { conformance.Check(t, b, tolerance) })
	}
}

// TestOrderOfThreads: kernels give the same whatever order threads and blocks run in, so no barrier is missing.
func TestOrderOfThreads(t *testing.T) {
	s := needStand(t)
	s.set(t, "backwards", 1)
	conformance.Check(t, &Backend{BLAS: OwnKernels}, tolerance)
}

func problem() backend.Problem { return conformance.Cases()[1].Problem }

// TestFaults: what is wrong with a device is said, and that another backend can do; nothing is left behind.
func TestFaults(t *testing.T) {
	s := needStand(t)
	for _, f := range []struct {
		key   string
		value int64
		b     Backend
		want  string
	}{
		{"devices", 0, Backend{}, "CUDA_ERROR_NO_DEVICE"},
		{"version", 10020, Backend{}, "driver supports CUDA 10.2, needed 11.4"},
		{"major", 6, Backend{}, "compute capability 6.0, needed 7.5"},
		{"memory", 4000, Backend{BLAS: OwnKernels}, "CUDA_ERROR_OUT_OF_MEMORY"},
		{"backwards", 0, Backend{Device: 3}, "device 3, allowed 0..0"},
		{"backwards", 0, Backend{Library: "libnone.so"}, "no driver: libnone.so"},
		{"backwards", 0, Backend{BLAS: "libnone.so"}, "libnone.so"},
	} {
		t.Run(f.want, func(t *testing.T) {
			s.set(t, f.key, f.value)
			allocations, streams := s.Get("allocations"), s.Get("streams")
			_, err := f.b.Open(problem())
			if !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), f.want) {
				t.Errorf("error %v, want one that wraps ErrUnsupported, with %q", err, f.want)
			}
			if a, n := s.Get("allocations"), s.Get("streams"); a != allocations || n != streams {
				t.Errorf("%d allocations and %d streams left, want %d and %d", a, n, allocations, streams)
			}
		})
	}
}

// TestLittleMemory: wherever memory runs out, Open says so and leaves nothing behind, until all fits.
func TestLittleMemory(t *testing.T) {
	s := needStand(t)
	p := problem()
	p.Losses = []string{"ce", "crl"}
	for _, b := range []Backend{{BLAS: OwnKernels}, {BLAS: OwnKernels, FeatureBytes: -1}} {
		failed := 0
		for limit := int64(0); ; limit += 700 {
			s.set(t, "memory", limit)
			session, err := b.Open(p)
			switch {
			case err == nil:
				if err := session.Close(); err != nil {
					t.Error(err)
				}
			case errors.Is(err, backend.ErrUnsupported) && strings.Contains(err.Error(), "OUT_OF_MEMORY"):
				failed++
			default:
				t.Fatalf("with %d bytes: error %v, want one that wraps ErrUnsupported, with OUT_OF_MEMORY", limit, err)
			}
			if n := s.Get("allocations"); n != 0 {
				t.Fatalf("with %d bytes: %d allocations left", limit, n)
			}
			if err == nil {
				break
			}
		}
		if failed < 10 {
			t.Errorf("%d limits were too small, want at least 10", failed)
		}
	}
}

// TestBroken: a context that a launch broke gives errors and no result.
func TestBroken(t *testing.T) {
	s := needStand(t)
	c := conformance.Cases()[0]
	session, err := new(Backend).Open(c.Problem)
	if err != nil {
		t.Fatal(err)
	}
	s.set(t, "sticky", 719)
	_, epoch := session.Epoch(c.Epoch)
	_, measure := session.Measure(backend.TrainSet, backend.Weights{})
	_, state := session.State()
	for _, err := range []error{epoch, measure, state, session.SetState(&backend.TrainingState{})} {
		if err == nil {
			t.Error("no error from a broken context")
		}
	}
	var e *DriverError
	if !errors.As(epoch, &e) || e.Name != "CUDA_ERROR_LAUNCH_FAILED" {
		t.Errorf("epoch: error %v, want CUDA_ERROR_LAUNCH_FAILED", epoch)
	}
	s.Set("sticky", 0)
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecorded: full mini-batches are replayed, and without the calls for that everything goes launch by launch.
func TestRecorded(t *testing.T) {
	s := needStand(t)
	c := conformance.Cases()[0]
	for _, graphs := range []int64{1, 0} {
		s.set(t, "graphs", graphs)
		session, err := new(Backend).Open(c.Problem)
		if err != nil {
			t.Fatal(err)
		}
		before := s.Get("replays")
		if _, err := session.Epoch(c.Epoch); err != nil {
			t.Fatal(err)
		}
		// 7 full mini-batches: the first is launched, the others replayed; the last of the epoch is smaller.
		if n := s.Get("replays") - before; n != 6*graphs {
			t.Errorf("%d replays, want %d", n, 6*graphs)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCopiesOverlap: features that are streamed go to the device while it works on the mini-batch before, all but the
// first, which has none, and the last two, which the end of the epoch waits for.
func TestCopiesOverlap(t *testing.T) {
	s := needStand(t)
	const batches = 8
	session, err := (&Backend{FeatureBytes: -1}).Open(smallProblem(16*batches, "ce"))
	if err != nil {
		t.Fatal(err)
	}
	before := s.Get("overlapped")
	if _, err := session.Epoch(epochOf(16*batches, 16)); err != nil {
		t.Fatal(err)
	}
	if n := s.Get("overlapped") - before; n != batches-3 {
		t.Errorf("%d of %d copies overlap with the work on another mini-batch, want %d", n, batches, batches-3)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}
