package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// The streams of the test: rows of agreeK classes, agreePane a label pane of 10 s, from agreeStart on.
const (
	agreeK     = 10
	agreePane  = 50
	agreeStart = int64(1_769_817_600) * 1e9 // 2026-01-31T00:00:00Z
	agreeLabel = int64(10e9)
)

// agreement is a stream of labelled logits.
type agreement struct {
	z      [][]float64
	labels []int
}

// agreementFaults are what happens to a row of a calibrated stream after the change. z is its logits, y its label; the
// result is the label that it gets.
var agreementFaults = []struct {
	name  string
	fault func(rng *rand.Rand, z []float64, y int) int
}{
	{"calibrated", func(_ *rand.Rand, _ []float64, y int) int { return y }},
	{"sudden fall", func(rng *rand.Rand, _ []float64, y int) int {
		if rng.Float64() < .4 {
			return rng.IntN(agreeK)
		}
		return y
	}},
	{"one class", func(rng *rand.Rand, z []float64, y int) int {
		if top := argmax(z); y == top && top == 3 && rng.Float64() < .4 {
			return (top + 1 + rng.IntN(agreeK-1)) % agreeK
		}
		return y
	}},
	{"sharpened", func(_ *rand.Rand, z []float64, y int) int {
		for k := range z {
			z[k] = math.Round(z[k]*1.8*64) / 64
		}
		return y
	}},
}

func argmax(z []float64) int {
	top := 0
	for k := range z {
		if z[k] > z[top] {
			top = k
		}
	}
	return top
}

// newAgreement draws rows whose labels follow their own probabilities up to row change, and the fault from there on.
// Logits are multiples of 1/64, so that every format holds them.
func newAgreement(fault func(*rand.Rand, []float64, int) int, rows, change int, seed uint64) agreement {
	rng, s := rand.New(rand.NewPCG(seed, 9)), agreement{}
	p := make([]float64, agreeK)
	for i := range rows {
		z := make([]float64, agreeK)
		for k := range z {
			z[k] = rng.NormFloat64()
		}
		z[rng.IntN(agreeK)] += 6 * rng.Float64()
		for k := range z {
			z[k] = math.Round(z[k]*64) / 64
		}
		kernel.Logits(z, p)
		y, u := 0, rng.Float64()
		for ; y < agreeK-1 && u > p[y]; y++ {
			u -= p[y]
		}
		if i >= change {
			y = fault(rng, z, y)
		}
		s.z, s.labels = append(s.z, z), append(s.labels, y)
	}
	return s
}

// file returns the stream as CSV.
func (s *agreement) file() string {
	var b strings.Builder
	b.WriteString("id")
	for k := range agreeK {
		fmt.Fprintf(&b, ",logits_%d", k)
	}
	b.WriteString(",label\n")
	for i, z := range s.z {
		b.WriteString(agreementID(i))
		for _, v := range z {
			fmt.Fprintf(&b, ",%v", v)
		}
		fmt.Fprintf(&b, ",%d\n", s.labels[i])
	}
	return b.String()
}

func agreementID(i int) string { return fmt.Sprintf("r%d", i) }

// agreementTime returns the event time of row i.
func agreementTime(i int) int64 { return agreeStart + int64(i)*agreeLabel/agreePane }

// agreementRow returns the first row of the label pane that begins at t.
func agreementRow(t record.Time) int {
	return int((t.UnixNano() - agreeStart) / agreeLabel * agreePane)
}

// TestReplayAgrees: `plumbline replay` of a file, by the real binary with the default configuration, raises the alarms
// that the library raises on the same panes, at the same rows, and decides and publishes the same refits. Here the
// library is without file, feed, shard and join: a model task gets panes of the rows, and, apart from it, calib/detect
// gets sums of the rows by bin, as they are and as the published calibrators leave them.
func TestReplayAgrees(t *testing.T) {
	testsize.Slow(t)
	binary := filepath.Join(t.TempDir(), "plumbline")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	rows := testsize.Pick(8000, 40_000)
	for i, c := range agreementFaults {
		for seed := range testsize.Pick(uint64(1), 3) {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				s := newAgreement(c.fault, rows, rows*3/8/agreePane*agreePane, 10*seed+uint64(i))
				got := s.replay(t, binary)
				s.checkTask(t, got)
				s.checkDetectors(t, got)
			})
		}
	}
}

// agreementResult is what a replay decided, in order.
type agreementResult struct {
	Alerts      []record.Alert
	Calibrators []record.Calibrator
}

func (r *agreementResult) sort() {
	slices.SortStableFunc(r.Alerts, func(a, b record.Alert) int {
		return cmp.Or(cmp.Compare(a.At.UnixNano(), b.At.UnixNano()), cmp.Compare(a.Rule, b.Rule))
	})
	slices.SortStableFunc(r.Calibrators, func(a, b record.Calibrator) int {
		return cmp.Or(cmp.Compare(a.DecidedAt.UnixNano(), b.DecidedAt.UnixNano()), cmp.Compare(a.Revision, b.Revision))
	})
}

func (s *agreement) replay(t *testing.T, binary string) (r agreementResult) {
	t.Helper()
	cmd := exec.Command(binary, "replay", writeFile(t, "stream.csv", s.file()), "--json", "--model", "m", "--version",
		"1", "--start", "2026-01-31T00:00:00Z", "--event-rate", fmt.Sprint(agreePane/10))
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = t.TempDir(), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("replay: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	r.sort()
	return r
}

// checkTask compares with a model task of the default configuration that gets panes of the rows.
func (s *agreement) checkTask(t *testing.T, got agreementResult) {
	t.Helper()
	var want agreementResult
	cfg := config.Default()
	task := engine.New(cfg, slog.New(slog.DiscardHandler)).NewModelTask(0, pipeline.NewCounts())
	offset := int64(0)
	take := func(m *pipeline.PaneMessage) {
		m.Of, m.Seq, m.Length = 1, uint64(offset)+1, agreeLabel
		if err := task.Take(context.Background(), pipeline.Record{Input: pipeline.Panes, Offset: offset,
			Value: pipeline.AppendPane(nil, m)}); err != nil {
			t.Fatal(err)
		}
		offset++
	}
	shape := cfg.Stats.Accumulators(cfg.Sample, cfg.Kafka.MessageMax)
	shape.K = agreeK
	for from := 0; from < len(s.z); from += agreePane {
		at := agreementTime(from) / agreeLabel
		take(&pipeline.PaneMessage{Model: "m", LabelPane: at, Cells: []pipeline.Cell{{Version: "1", K: agreeK,
			PredictionPane: at, Set: s.set(t, shape, from)}}})
		take(&pipeline.PaneMessage{Punctuation: true, Closed: at + 1})
		if err := task.Settle(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, m := range task.Outputs() {
			want.add(t, m)
		}
	}
	want.sort()
	compareDecisions(t, "alert", got.Alerts, want.Alerts, func(a record.Alert) string {
		return fmt.Sprintf("%s %s at row %d, since row %d, log evidence %.2f", a.Rule, a.State, agreementRow(a.At),
			agreementRow(a.Since), a.Value)
	})
	compareDecisions(t, "refit", got.Calibrators, want.Calibrators, func(c record.Calibrator) string {
		return fmt.Sprintf("revision %d, published %v, %s by %s at row %d, in force from row %d, fit on %d rows: %s",
			c.Revision, c.Published, c.Method, c.Reason, agreementRow(c.DecidedAt), agreementRow(c.EffectiveFrom),
			c.Evidence.FitRows, c.Outcome)
	})
}

func (r *agreementResult) add(t *testing.T, m pipeline.Message) {
	t.Helper()
	var err error
	switch m.Stream {
	case pipeline.StreamAlerts:
		var a record.Alert
		err = json.Unmarshal(m.Value, &a)
		r.Alerts = append(r.Alerts, a)
	case pipeline.StreamCalibrators, pipeline.StreamDecisions: // published, and "no change"
		var c record.Calibrator
		err = json.Unmarshal(m.Value, &c)
		r.Calibrators = append(r.Calibrators, c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// set returns the bytes of what a shard sends of the pane that begins with row from.
func (s *agreement) set(t *testing.T, shape acc.Config, from int) []byte {
	t.Helper()
	set, err := acc.New(shape)
	if err != nil {
		t.Fatal(err)
	}
	p, z := make([]float64, agreeK), make([]float32, agreeK)
	for i := from; i < min(from+agreePane, len(s.z)); i++ {
		y := s.labels[i]
		for k, v := range s.z[i] {
			z[k] = float32(v)
		}
		r, _ := kernel.Logits(s.z[i], p)
		for _, err := range []error{
			set.Predict(r, 1),
			set.Label(r, p, acc.Truth{Class: y, NLL: kernel.NLL(r, s.z[i], y, false), Weight: 1,
				Served: math.NaN()}),
			set.AddSample(acc.SampleRow{ID: arrowio.HashID(agreementID(i)), TS: agreementTime(i),
				LabelTS: agreementTime(i), W: 1, Y: int32(y), Z: z}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	body, err := set.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func compareDecisions[T any](t *testing.T, what string, got, want []T, say func(T) string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var a, b string
		if i < len(got) {
			a = say(got[i])
		}
		if i < len(want) {
			b = say(want[i])
		}
		if a != b {
			t.Errorf("%s %d: the binary has %q, the library %q", what, i, a, b)
		}
		t.Logf("%s: %s", what, b)
	}
}

// checkDetectors compares with calib/detect alone: it gets the sums by bin of each pane's rows, as they are and as the
// calibrators that the replay published leave them.
func (s *agreement) checkDetectors(t *testing.T, got agreementResult) {
	t.Helper()
	cfg := config.Default().Alarm
	spec := detect.AlarmSpec{Bins: cfg.Bins, EpsilonECE: cfg.EpsilonECE, EpsilonBin: cfg.EpsilonBin,
		Alpha: float64(agreeLabel) / float64(cfg.FalseAlarmEvery) / float64(len(cfg.Signals))}
	byClass := spec
	byClass.Classes, byClass.EpsilonClass = agreeK, cfg.EpsilonClass
	s.checkDetector(t, "calibration-raw", spec, nil, got.Alerts)
	s.checkDetector(t, "calibration-calibrated", byClass, got.Calibrators, got.Alerts)
}

// checkDetector compares the panes at which an alarm fires. While its alert stays the alarm is at work too, so the ends
// of alerts are taken from the replay.
func (s *agreement) checkDetector(t *testing.T, rule string, spec detect.AlarmSpec, by []record.Calibrator,
	alerts []record.Alert) {
	t.Helper()
	alarm, err := detect.NewAlarm(spec)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []int
	ends := map[int]bool{}
	firing := false
	for _, a := range alerts {
		if a.Rule != rule {
			continue
		}
		if a.State == "firing" && !firing { // else published again, as a calibrator answers it
			got = append(got, agreementRow(a.At))
		}
		if firing = a.State == "firing"; !firing {
			ends[agreementRow(a.At)] = true
		}
	}
	firing = false
	for from := 0; from < len(s.z); from += agreePane {
		end := from + agreePane
		bins, classes := s.sums(t, from, spec.Bins, inForceAt(t, by, from))
		fired, err := alarm.Observe(agreementTime(end), bins, classes)
		if err != nil {
			t.Fatal(err)
		}
		if fired != nil && !firing {
			firing, want = true, append(want, end)
		}
		if ends[end] {
			firing = false
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s fires at rows %v in the replay, %v by calib/detect", rule, got, want)
	}
}

// inForceAt returns the calibrator in force for the rows of the pane that begins with row from.
func inForceAt(t *testing.T, by []record.Calibrator, from int) (c calibrator.Calibrator) {
	t.Helper()
	for _, r := range by {
		if !r.Published || r.EffectiveFrom.UnixNano() > agreementTime(from) {
			continue
		}
		if r.Stage != record.StageFull {
			t.Fatalf("stage %q of revision %d: only full ones are compared", r.Stage, r.Revision)
		}
		var err error
		if c, err = calibrator.Decode(r.Calibrator); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// sums returns the sums of the pane's rows by bin and by class as c leaves them.
func (s *agreement) sums(t *testing.T, from, m int, c calibrator.Calibrator) (bins, classes detect.Pane) {
	t.Helper()
	bins, classes = make(detect.Pane, m), make(detect.Pane, agreeK*detect.ClassBands)
	p := make([]float64, agreeK)
	for i := from; i < min(from+agreePane, len(s.z)); i++ {
		if c == nil {
			kernel.Logits(s.z[i], p)
		} else {
			c.Apply(p, s.z[i])
		}
		top := argmax(p)
		for _, b := range []*detect.BinSums{&bins[int(math.Ceil(p[top]*float64(m)))-1],
			&classes[detect.ClassCell(top, p[top])]} {
			if s.labels[i] == top {
				b.N1, b.C1 = b.N1+1, b.C1+p[top]
			} else {
				b.N0, b.C0 = b.N0+1, b.C0+p[top]
			}
		}
	}
	return bins, classes
}
