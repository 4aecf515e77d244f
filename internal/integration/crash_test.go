//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/realdata"
)

// crashConfig has everything on, so that windows, detector, calibrators and the join buffer must all survive.
const crashConfig = driftCommon + `
rules:
- {name: ece, signal: calibrated, rows: 2000, min_rows: 1000, warmup_rows: 8500, fire: 0.05, clear: 0.03, for: 20s}
refit: {method: temperature, period: 150s, on_alarm: true, fresh_rows: 2000, min_rows: 1000, max_rows: 3000}
`

const (
	kills = 10
	// Rows a second of wall time: slow enough that the stream is still being produced at the last kill.
	crashRate = 250
)

// TestCrash kills the process at ten random moments while a stream is produced. What it published in the end is, byte
// for byte, what an undisturbed run published.
func TestCrash(t *testing.T) {
	t.Parallel()
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	produce := func(s settings, rate int) []string {
		return []string{"produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1",
			"--shuffle",
			"--seed", "11", "--event-rate", fmt.Sprint(driftRate), "--start", start.Format(time.RFC3339),
			"--label-delay", "0s-2m", "--rate", fmt.Sprint(rate), file + ":resnet20", file + ":resnet20_gauss_noise_s1"}
	}
	calm := configure(t, crashConfig)
	p := run(t, calm)
	runOK(t, produce(calm, 0)...)
	want := p.drain(driftTotal, driftTotal)
	p.stop()

	s := configure(t, crashConfig)
	producer := exec.Command(binary, produce(s, crashRate)...)
	var said bytes.Buffer // to be read when it has ended
	producer.Stderr = &said
	if err := producer.Start(); err != nil {
		t.Fatal(err)
	}
	produced := make(chan error, 1)
	go func() { produced <- producer.Wait() }()
	t.Cleanup(func() { _ = producer.Process.Kill() })

	const seed = 3
	random := rand.New(rand.NewPCG(seed, seed))
	seen := int64(-1)
	for i := range kills {
		p := run(t, s)
		// Let it take new rows, then kill it anywhere within two checkpoint intervals.
		p.wait(time.Minute, "take new rows", func() bool {
			select {
			case err := <-produced: // without its rows there is nothing new
				if produced <- err; err != nil {
					t.Fatalf("produce: %v: %s", err, said.String())
				}
			default:
			}
			st, err := p.status()
			return err == nil && (st.Counts.Predictions > seen || st.Counts.Predictions == driftTotal)
		})
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		if st, err := p.status(); err == nil {
			seen = st.Counts.Predictions
		}
		p.kill()
		t.Logf("kill %d after %d rows", i+1, seen)
	}
	if err := <-produced; err != nil {
		t.Fatalf("produce: %v: %s", err, said.String())
	}
	p = run(t, s)
	got := p.drain(driftTotal, driftTotal)
	p.stop()

	if got.StateHash != want.StateHash || want.StateHash == "" {
		t.Errorf("state hash: got %q, want that of the undisturbed run, %q", got.StateHash, want.StateHash)
	}
	if fmt.Sprint(got.Counts) != fmt.Sprint(want.Counts) {
		t.Errorf("counts: got %+v, want those of the undisturbed run, %+v", got.Counts, want.Counts)
	}
	compareSnapshots(t, lastSnapshots(t, s.topic("snapshots")), lastSnapshots(t, calm.topic("snapshots")))
	for _, topic := range []string{"alerts", "calibrators"} {
		got, want := distinct(t, s.topic(topic)), distinct(t, calm.topic(topic))
		if len(want) == 0 {
			t.Errorf("%s: the undisturbed run wrote none; the test needs some", topic)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d distinct records, want the %d of the undisturbed run:\n%.600q\n%.600q", topic,
				len(got), len(want), got, want)
		}
	}
}

func compareSnapshots(t *testing.T, got, want map[string]string) {
	t.Helper()
	if len(want) == 0 {
		t.Error("the undisturbed run wrote no snapshots")
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("last snapshot of %s: got\n%.1000s\nwant\n%.1000s", key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			t.Errorf("snapshot of %s is not in the undisturbed run", key)
		}
	}
	t.Logf("rows equal: %d last snapshots compared", len(want))
}
