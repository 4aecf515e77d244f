//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

const calibratedConfig = `
event_time: {idle_timeout: 0s}
windows: [{name: day, kind: time, size: 24h}]
rules: []
refit: {method: temperature, period: 60s, on_alarm: false, min_rows: 1000, max_rows: 5000}
calibrated: {enabled: true, columns: probs, at_once: %t}
`

// TestCalibratedStream: every prediction comes out once, with softmax(z/T) of the revision that its message names: the
// identity before the first refit is published, the fitted temperature after it.
func TestCalibratedStream(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []bool{false, true} {
		t.Run(fmt.Sprintf("at_once=%t", atOnce), func(t *testing.T) {
			t.Parallel()
			checkCalibratedStream(t, fmt.Sprintf(calibratedConfig, atOnce))
		})
	}
}

func checkCalibratedStream(t *testing.T, config string) {
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	s := configure(t, config)
	p := run(t, s)
	produce := func(more ...string) {
		args := append([]string{"produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1",
			"--event-rate", "20",
			"--start", start.Format("2006-01-02T15:04:05Z"), "--label-delay", "0s-5s", "--end=false"}, more...)
		runOK(t, append(args, file+":resnet20")...)
	}
	produce("--limit", "4000")
	p.drain(4000, 3900)
	temperatures := published(t, s)
	if len(temperatures) == 0 {
		t.Fatal("no calibrator after 4,000 rows of a net with 12 % calibration error")
	}
	produce("--skip", "4000", "--limit", "3000", "--end=true")
	p.drain(7000, 7000)
	p.stop()
	temperatures = published(t, s)

	rows := loadRows(t, "c10jpeg_resnet_logits.npz", "resnet20", 10)
	byID := map[arrowio.ID]int{}
	for i := range 7000 {
		byID[arrowio.HashID(fmt.Sprintf("row-%d", i))] = i
	}
	seen, calibrated := map[int]bool{}, 0
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("calibrated")) {
		revision := metadata(t, m.Value, arrowio.MetaCalibrator)
		bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(m.Value, arrowio.Origin{}, arrowio.Predictions)
		if err != nil {
			t.Fatalf("calibrated message at offset %d: %v", m.Offset, err)
		}
		for _, b := range bs {
			for i := range b.N {
				row, ok := byID[b.IDs[i]]
				if !ok || seen[row] {
					t.Fatalf("offset %d row %d: unknown id, or row %d twice", m.Offset, i, row)
				}
				seen[row] = true
				n, err := strconv.Atoi(revision)
				if err != nil {
					continue // the message spans the moment of a change
				}
				if n > 0 {
					calibrated++
				}
				compareProbs(t, b.Scores[i*b.K:(i+1)*b.K], rows.Scores[row*10:(row+1)*10], temperatures[n])
			}
		}
	}
	if len(seen) != 7000 || calibrated < 2500 {
		t.Errorf("%d rows, %d of them calibrated; want 7,000 and the 3,000 that came after the refit", len(seen),
			calibrated)
	}
}

// published returns the temperatures by revision; revision 0 is the identity.
func published(t *testing.T, s settings) map[int]float64 {
	t.Helper()
	out := map[int]float64{}
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("calibrators")) {
		var c record.Calibrator
		if err := json.Unmarshal(m.Value, &c); err != nil {
			t.Fatal(err)
		}
		out[c.Revision] = c.Evidence.Temperature
	}
	if len(out) > 0 {
		out[0] = 1
	}
	return out
}

func metadata(t *testing.T, value []byte, key string) string {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	meta := r.Schema().Metadata()
	v, _ := meta.GetValue(key)
	return v
}

// float32Tolerance is of probabilities stored as float32.
const float32Tolerance = 1e-6

func compareProbs(t *testing.T, got []float32, z []float32, temperature float64) {
	t.Helper()
	sum := 0.0
	for _, x := range z {
		sum += math.Exp(float64(x) / temperature)
	}
	for k, x := range z {
		if want := math.Exp(float64(x)/temperature) / sum; math.Abs(float64(got[k])-want) > float32Tolerance {
			t.Fatalf("class %d: probability %v, want %v at T = %v", k, got[k], want, temperature)
		}
	}
}
