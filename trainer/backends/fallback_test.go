package backends

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/cuda"
	"github.com/plumbline/plumbline/trainer/head"
)

// opens is a backend that answers with an error.
type opens struct {
	name string
	err  error
}

func (o opens) Name() string                                  { return o.name }
func (o opens) Open(backend.Problem) (backend.Session, error) { return nil, o.err }

// TestFallback: only where a backend says that it cannot do is another one taken, and the log says why.
func TestFallback(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		err, want error
		name      string
	}{{fmt.Errorf("%w: no memory", backend.ErrUnsupported), nil, "second"}, {broken, broken, "first"},
		{nil, nil, "first"}} {
		var log strings.Builder
		f := &fallback{first: opens{"first", c.err}, second: opens{"second", nil},
			log: slog.New(slog.NewTextHandler(&log, nil))}
		if _, err := f.Open(backend.Problem{}); !errors.Is(err, c.want) || f.Name() != c.name ||
			strings.Contains(log.String(), "no memory") != (c.name == "second") {
			t.Errorf("%v: got %v on %s; log %s", c.err, err, f.Name(), &log)
		}
	}
	t.Setenv(cuda.EnvLibrary, "/nonexistent/libcuda.so")
	var log strings.Builder
	if b := orCPU(new(cuda.Backend), Options{GEMM: head.Gonum{},
		Log: slog.New(slog.NewTextHandler(&log, nil))}); b.Name() != onCPU(head.Gonum{}).Name() ||
		!strings.Contains(log.String(), "there is no device") {
		t.Errorf("without a driver: got %s; log %s", b.Name(), &log)
	}
}
