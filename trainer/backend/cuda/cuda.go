package cuda

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/plumbline/plumbline/trainer/backend"
)

// Backend trains on an NVIDIA device. The zero value takes the first device, the driver and cuBLAS where they are
// found.
type Backend struct {
	// Library is the path of the driver's library; empty: that of the environment variable EnvLibrary, or libcuda.so.1.
	Library string
	// BLAS is the path of cuBLAS; empty: that of EnvBLAS, or where it is found, else own kernels; OwnKernels: those.
	BLAS string
	// Device is the device's number.
	Device int
	// FeatureBytes bounds the device memory for features; what is beyond is streamed from the host. 0: what is free,
	// less a reserve; below 0: none.
	FeatureBytes int64
	// Precision is FP32, TF32x3 or BF16; empty: the fastest of the device whose losses are those of FP32 within
	// LossBound. Own kernels always multiply in FP32.
	Precision string
	// Log gets the time of epochs beside what they take at least; nil: it is not told.
	Log *slog.Logger
	// Direct launches every kernel by itself, without recording steps: for finding mistakes.
	Direct bool
}

// OwnKernels as Backend.BLAS leaves cuBLAS out.
const OwnKernels = ownKernels

// Name implements [backend.Backend].
func (*Backend) Name() string { return "cuda" }

// Describe returns what device Open would take. The error wraps backend.ErrUnsupported where there is none, where its
// driver is too old, or where it fails.
func (b *Backend) Describe() (Info, error) {
	d, err := openDevice(b)
	if err != nil {
		return Info{}, asUnsupported(err)
	}
	return d.info, d.close()
}

// asUnsupported says of the driver's errors that another backend can do.
func asUnsupported(err error) error {
	var e *DriverError
	if errors.As(err, &e) && !errors.Is(err, backend.ErrUnsupported) {
		return fmt.Errorf("%w: %w", backend.ErrUnsupported, err)
	}
	return err
}

// Open implements [backend.Backend].
func (b *Backend) Open(p backend.Problem) (backend.Session, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := &session{p: p, direct: b.Direct, timing: timing{log: b.Log}}
	for _, text := range p.Losses {
		c, err := compile(text)
		if err != nil {
			return nil, err
		}
		s.losses = append(s.losses, c)
	}
	d, err := openDevice(b)
	if err != nil {
		return nil, asUnsupported(err)
	}
	s.device = d
	if err := d.thread.do(func() error { return s.allocate(b.FeatureBytes) }); err != nil {
		return nil, errors.Join(asUnsupported(err), s.Close())
	}
	return s, nil
}
