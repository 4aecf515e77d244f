//go:build integration

package integration

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

// oneDay holds a whole stream in one window, without rules and refits.
const oneDay = `
event_time: {idle_timeout: 0s}
stats: {bins: 15, extra_bins: [10]}
windows: [{name: day, kind: time, size: 24h}]
rules: []
refit: {method: none}
`

// tolerance: sums are fixed-point with a rounding of 2^-33 a row, so a mean is off by at most 1.2e-10.
const tolerance = 1e-9

var streams = []struct {
	file, array string
	k           int
}{
	{"c10_chenyaofo19_logits.npz", "resnet20", 10},
	{"c100_chenyaofo_logits.npz", "resnet56", 100},
	{"c10jpeg_resnet_logits.npz", "resnet20", 10},
}

const streamRows = 10000 // of each

// offline is what `plumbline eval --json --detail` prints, as far as the stream has it.
type offline struct {
	record.Metrics
	SoftBins record.SoftBins `json:"soft_bins"`
	CDF      record.CDF      `json:"cdf"`
}

// TestStreaming is three models on one set of topics: the stream's metrics are those of the files, and replaying
// the files or the topics ends in the live run's state.
func TestStreaming(t *testing.T) {
	t.Parallel()
	feed := []string{
		"--labels", "test_labels", "--version", "1", "--seed", "7", "--shuffle", "--event-rate", "100",
		"--start", start.Format("2006-01-02T15:04:05Z"), "--label-delay", "0s-5m", "--batch", "256",
	}
	for _, s := range streams {
		feed = append(feed, realdata.File(t, s.file)+":"+s.array)
	}
	s := configure(t, oneDay)
	p := run(t, s)
	runOK(t, append([]string{"produce", "-c", s.file}, feed...)...)
	total := int64(len(streams) * streamRows)
	st := p.drain(total, total)
	p.stop()
	snaps := latest(t, s)

	t.Run("counts", func(t *testing.T) {
		c := st.Counts
		if c.Predictions != total || c.Labels != total || c.Joined != total || c.Labelled != total {
			t.Errorf("got %d predictions, %d labels, %d joined, %d labelled; want %d each", c.Predictions, c.Labels,
				c.Joined, c.Labelled, total)
		}
		if n := sum(c.Rejected) + sum(c.DeadLetters) + c.Late + c.Expired + c.Evicted + c.Duplicates; n != 0 {
			t.Errorf("got rows left out: %+v; want none", c)
		}
	})
	for _, stream := range streams {
		t.Run(strings.TrimSuffix(stream.file, ".npz"), func(t *testing.T) {
			compareOffline(t, findSnapshot(t, snaps, stream.file, stream.array),
				realdata.File(t, stream.file)+":"+stream.array)
		})
	}
	type replayed struct {
		StateHash string `json:"state_hash"`
		Rows      int64  `json:"rows"`
		Labelled  int64  `json:"labelled"`
	}
	check := func(t *testing.T, got replayed) {
		if got.StateHash != st.StateHash || st.StateHash == "" {
			t.Errorf("state hash: got %q, want that of the live run, %q", got.StateHash, st.StateHash)
		}
		if got.Rows != total || got.Labelled != total {
			t.Errorf("got %d rows, %d labelled; want %d each", got.Rows, got.Labelled, total)
		}
		t.Logf("hash %s", got.StateHash)
	}
	t.Run("replay files", func(t *testing.T) {
		var got replayed
		runJSON(t, &got, append([]string{"replay", "-c", s.file, "--json"}, feed...)...)
		check(t, got)
	})
	t.Run("replay topic", func(t *testing.T) {
		var got replayed
		runJSON(t, &got, "replay", "-c", s.file, "--json", "--topic", "--from", "earliest", "--to", "latest")
		check(t, got)
	})
}

// findSnapshot returns the all-rows snapshot of the model that was fed from file:array; models are named after both.
func findSnapshot(t *testing.T, snaps []record.Snapshot, file, array string) record.Snapshot {
	t.Helper()
	var models []string
	for _, s := range snaps {
		models = append(models, s.Model)
		stem := strings.TrimSuffix(file, ".npz")
		if s.Slice == "" && s.Window.Name == "day" && strings.Contains(s.Model, stem) &&
			strings.Contains(s.Model, array) {
			return s
		}
	}
	t.Fatalf("no snapshot of %s:%s among those of models %q", file, array, models)
	return record.Snapshot{}
}

func compareOffline(t *testing.T, s record.Snapshot, source string) {
	var at15, at10 offline
	runJSON(t, &at15, "eval", source, "--labels", "test_labels", "--json", "--bins", "15", "--detail")
	runJSON(t, &at10, "eval", source, "--labels", "test_labels", "--json", "--bins", "10")
	if s.Raw.N != streamRows || s.Labelled != streamRows || s.Predictions != streamRows || at15.N != streamRows {
		t.Errorf("rows: got raw n %d, labelled %d, predictions %d; eval n %d; want %d each", s.Raw.N, s.Labelled,
			s.Predictions, at15.N, streamRows)
	}
	near(t, "accuracy", s.Raw.Accuracy, at15.Accuracy)
	near(t, "ece", s.Raw.ECE, at15.ECE)
	near(t, "ece_l2", s.Raw.ECEL2, at15.ECEL2)
	near(t, "mce", s.Raw.MCE, at15.MCE)
	near(t, "cwece", s.Raw.CWECE, at15.CWECE)
	near(t, "nll", s.Raw.NLL, at15.NLL)
	near(t, "brier", s.Raw.Brier, at15.Brier)
	near(t, "sbece_bin", s.Raw.SBECEBin, at15.SBECEBin)
	near(t, "sbece_lb", s.Raw.SBECELB, at15.SBECELB)
	ece10, ok := s.Raw.ECEByBins["10"]
	if !ok {
		t.Error("ece_by_bins: no entry for 10 bins")
	}
	near(t, "ece at 10 bins", &ece10, at10.ECE)

	if s.Raw.SoftBins == nil || s.Raw.CDF == nil {
		t.Fatalf("snapshot has soft bins: %v, cdf: %v; want both", s.Raw.SoftBins != nil, s.Raw.CDF != nil)
	}
	// Sums are compared as means.
	nearAll(t, "soft_bins.s", s.Raw.SoftBins.S, at15.SoftBins.S, streamRows)
	nearAll(t, "soft_bins.uc", s.Raw.SoftBins.UC, at15.SoftBins.UC, streamRows)
	nearAll(t, "soft_bins.ua", s.Raw.SoftBins.UA, at15.SoftBins.UA, streamRows)
	nearAll(t, "soft_bins.uc2", s.Raw.SoftBins.UC2, at15.SoftBins.UC2, streamRows)
	nearAll(t, "cdf.grid", s.Raw.CDF.Grid, at15.CDF.Grid, 1)
	nearAll(t, "cdf.g", s.Raw.CDF.G, at15.CDF.G, 1)
	if s.Raw.ECE != nil && s.Raw.Accuracy != nil {
		t.Logf("rows %d, accuracy %.4f, ece %.6f", s.Raw.N, *s.Raw.Accuracy, *s.Raw.ECE)
	}
}

func near(t *testing.T, name string, got, want *float64) {
	t.Helper()
	if got == nil || want == nil {
		t.Errorf("%s: got %s, want %s; both must be there", name, show(got), show(want))
	} else if !(math.Abs(*got-*want) <= tolerance) {
		t.Errorf("%s: got %.12f, want %.12f within %g", name, *got, *want, tolerance)
	}
}

func nearAll(t *testing.T, name string, got, want []float64, scale float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: got %d values, want %d, at least 1", name, len(got), len(want))
		return
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i])/scale <= tolerance) {
			t.Errorf("%s[%d]: got %.12f, want %.12f within %g", name, i, got[i], want[i], tolerance*scale)
		}
	}
}

func show(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}
