package engine

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
)

// TestBoundsAreMetrics: what the alerts on a full join and a full disk compare with.
func TestBoundsAreMetrics(t *testing.T) {
	cfg := config.Default()
	cfg.Join.MaxRows, cfg.Checkpoints.Dir = 1234, filepath.Join(t.TempDir(), "not", "yet")
	gather := func(cfg config.Config) map[string]float64 {
		reg := prometheus.NewRegistry()
		reg.MustRegister(runMetrics{New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))})
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				name := strings.TrimPrefix(f.GetName(), "plumbline_")
				for _, l := range m.Label {
					name += " " + l.GetValue()
				}
				out[name] = m.Gauge.GetValue()
			}
		}
		return out
	}
	got := gather(cfg)
	if got["join_max_rows"] != 1234 {
		t.Errorf("join_max_rows %v, want 1234", got["join_max_rows"])
	}
	space, ok := spaceUnder(cfg.Checkpoints.Dir)
	if !ok {
		t.Skip("this system does not tell what a file system has")
	}
	for _, dir := range []string{"checkpoints", "join"} {
		if size := got["disk_size_bytes "+dir]; size != float64(space.size) || got["disk_free_bytes "+dir] > size ||
			size == 0 {
			t.Errorf("%s: %v free of %v, the file system has %d", dir, got["disk_free_bytes "+dir], size, space.size)
		}
	}
	cfg.Checkpoints.Store, cfg.Join.MemoryBytes = pipeline.StoreTopic, 0
	for name := range gather(cfg) {
		if strings.HasPrefix(name, "disk_") {
			t.Errorf("%s of a process that writes to no disk", name)
		}
	}
}
