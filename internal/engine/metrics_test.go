package engine

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/disk"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/pipeline"
)

// TestBoundsAreMetrics: what the alerts on a full join and a full disk compare with.
func TestBoundsAreMetrics(t *testing.T) {
	cfg := config.Default()
	cfg.Join.MaxRows, cfg.Checkpoints.Dir = 1234, filepath.Join(t.TempDir(), "not", "yet")
	cfg.Archive.Directory, cfg.History.Path = t.TempDir(), filepath.Join(t.TempDir(), "history.db")
	gather := func(cfg config.Config) map[string]float64 {
		return gauges(t, New(cfg, slog.New(slog.DiscardHandler)))
	}
	got := gather(cfg)
	if got["join_max_rows"] != 1234 {
		t.Errorf("join_max_rows %v, want 1234", got["join_max_rows"])
	}
	space, ok := disk.Under(cfg.Checkpoints.Dir)
	if !ok {
		t.Skip("this system does not tell what a file system has")
	}
	for _, dir := range []string{"checkpoints", "join", "archive", "history"} {
		if size := got["disk_size_bytes "+dir]; size != float64(space.Size) || got["disk_free_bytes "+dir] > size ||
			size == 0 {
			t.Errorf("%s: %v free of %v, the file system has %d", dir, got["disk_free_bytes "+dir], size, space.Size)
		}
	}
	cfg.Checkpoints.Store, cfg.Join.MemoryBytes = pipeline.StoreTopic, 0
	cfg.Archive.Directory, cfg.History.Path = "", ""
	for name := range gather(cfg) {
		if strings.HasPrefix(name, "disk_") {
			t.Errorf("%s of a process that writes to no disk", name)
		}
	}
}

// TestOpenOrderIsAMetric: for as long as an order for more shards is being carried out, and no longer.
func TestOpenOrderIsAMetric(t *testing.T) {
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	for plan, want := range map[*scale.Plan]float64{
		{Of: 4}: 0,
		{Of: 4, To: 12, Since: time.Unix(900, 0)}:   900,
		{Of: 12, From: 4, Since: time.Unix(900, 0)}: 900,
		{Of: 12, Since: time.Unix(900, 0)}:          0,
	} {
		rt.book = scale.Fixed(*plan)
		if got := gauges(t, rt)["scale_open_timestamp_seconds"]; got != want {
			t.Errorf("%+v: %g, want %g", plan, got, want)
		}
	}
}

// TestSilenceIsAMetric: since when no broker has answered, and nothing while one does.
func TestSilenceIsAMetric(t *testing.T) {
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	for _, since := range []float64{0, 900, 0} {
		at := time.Time{}
		if since > 0 {
			at = time.Unix(int64(since), 0)
		}
		rt.heardNothing("shards")(at, io.EOF)
		if got, silent := gauges(t, rt)["kafka_silent_timestamp_seconds"]; got != since || silent != (since > 0) {
			t.Errorf("silent since %g, want %g", got, since)
		}
	}
}

// gauges are the metrics of a process by name and the values of labels.
func gauges(t *testing.T, rt *Engine) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(runMetrics{rt.process})
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
