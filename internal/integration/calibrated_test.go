//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"math"
	"slices"
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
// identity before the first refit is published, the fitted temperature after it; its top confidence corrected as was
// published for that revision before the row's event time, once the correction had come.
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
	temperatures, _ := published(t, s)
	if len(temperatures) == 0 {
		t.Fatal("no calibrator after 4,000 rows of a net with 12 % calibration error")
	}
	produce("--skip", "4000", "--limit", "3000", "--end=true")
	p.drain(7000, 7000)
	p.stop()
	temperatures, tops := published(t, s)

	rows := loadRows(t, "c10jpeg_resnet_logits.npz", "resnet20", 10)
	byID := map[arrowio.ID]int{}
	for i := range 7000 {
		byID[arrowio.HashID(fmt.Sprintf("row-%d", i))] = i
	}
	seen, calibrated, corrected := map[int]bool{}, 0, 0
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
				want := softmaxAt(rows.Scores[row*10:(row+1)*10], temperatures[n])
				got, right := b.Scores[i*b.K:(i+1)*b.K], false
				for _, top := range tops {
					if top.Revision == n && top.EffectiveFrom.UnixNano() <= b.TS[i] &&
						nearProbs(got, correctedBy(top, want)) {
						right = true
						corrected++
						break
					}
				}
				if !right && !nearProbs(got, want) {
					t.Fatalf("offset %d row %d: %v, want %v of revision %d, or that corrected", m.Offset, i, got,
						want, n)
				}
			}
		}
	}
	if len(seen) != 7000 || calibrated < 2500 || corrected < 1000 {
		t.Errorf("%d rows, %d of them calibrated, %d corrected; want 7,000, the 3,000 that came after the refit, "+
			"and many", len(seen), calibrated, corrected)
	}
}

// published returns the temperatures by revision, of which 0 is the identity, and the corrections of top confidences.
func published(t *testing.T, s settings) (map[int]float64, []record.TopCorrection) {
	t.Helper()
	out, tops := map[int]float64{}, []record.TopCorrection(nil)
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("calibrators")) {
		r, err := record.DecodeCalibrators(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		switch r := r.(type) {
		case *record.Calibrator:
			out[r.Revision] = r.Evidence.Temperature
		case *record.TopCorrection:
			tops = append(tops, *r)
		}
	}
	if len(out) > 0 {
		out[0] = 1
	}
	return out, tops
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

func softmaxAt(z []float32, temperature float64) []float64 {
	p, sum := make([]float64, len(z)), 0.0
	for k, x := range z {
		p[k] = math.Exp(float64(x) / temperature)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// correctedBy is a power of probabilities and Platt's map of the top confidence, plainly; the other classes keep their
// shares of the rest, and none comes out on top.
func correctedBy(top record.TopCorrection, p []float64) []float64 {
	if top.Power != 0 {
		logs := make([]float32, len(p))
		for k := range p {
			logs[k] = float32(math.Log(p[k]))
		}
		p = softmaxAt(logs, 1/top.Power)
	}
	out, c := slices.Clone(p), slices.Max(p)
	for _, own := range top.Apart {
		if slices.Index(p, c) == own.Class {
			top.Slope, top.Intercept = own.Slope, own.Intercept
		}
	}
	odds := math.Log(c / (1 - c))
	at := max(-math.Log(9999), min(math.Log(9999), odds))
	now := 1 / (1 + math.Exp(-(top.Slope*at + top.Intercept + odds - at)))
	slices.Sort(out)
	if second := out[len(out)-2] * (1 + 0x1p-20) / (1 - c); now < second*(1-now) {
		now = second / (1 + second)
	}
	copy(out, p)
	for k := range out {
		if out[k] *= (1 - now) / (1 - c); p[k] == c {
			out[k] = now
		}
	}
	return out
}

func nearProbs(got []float32, want []float64) bool {
	for k := range want {
		if math.Abs(float64(got[k])-want[k]) > float32Tolerance {
			return false
		}
	}
	return true
}
