package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/examples/digits"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

// replayDemo runs the demo's stream through the operators without a broker between them.
func replayDemo(t *testing.T, length time.Duration, seed uint64) Result {
	t.Helper()
	plan := newPlan(length, seed)
	d := &runner{plan: plan, lines: &Lines{W: io.Discard}}
	if err := d.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := plan.config("127.0.0.1:1", t.TempDir(), "")
	if err := writeHead(d.net, cfg); err != nil {
		t.Fatal(err)
	}
	r := engine.NewReplay(cfg, slog.New(slog.DiscardHandler))
	story := newStory(plan, d.lines)
	r.Listen = story.take
	if err := r.Open(cfg.Kafka.Partitions); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := plan.feed(d.net, d.held, cfg.Kafka.Partitions, replayGate(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Feed(context.Background(), f, nil); err != nil {
		t.Fatal(err)
	}
	result, err := story.result()
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := r.Model.Hash()
	if err != nil {
		t.Fatal(err)
	}
	result.ModelAccuracy, result.StateHash = d.accuracy, engine.CombineHashes(hashes)
	return result
}

// replayGate trains a head when the stream comes to the first row that it is to run on, from what the replay has
// archived.
func replayGate(t *testing.T, r *engine.Replay) hold {
	return func(ts time.Time) error {
		if err := r.Settle(t.Context()); err != nil { // a fit that lasts would hide the request behind it
			return err
		}
		for _, req := range awaited(r.Tuning, ts) {
			dir := t.TempDir()
			task := service.Task{Request: req, Attempt: 1, Dir: dir, Result: filepath.Join(dir, "result"),
				Progress: func(string, float64, float64) {}}
			if err := os.Mkdir(task.Result, 0o755); err != nil {
				return err
			}
			if err := newTrainer(r.Config, r.Log).Run(t.Context(), task); err != nil {
				return err
			}
			weights, err := os.ReadFile(filepath.Join(task.Result, service.FileHead))
			if err != nil {
				return err
			}
			h := record.Head{Schema: 1, Kind: record.HeadTrained, ID: req.ID, Model: req.Model, Version: req.Version,
				Number: req.Number, ShadowVersion: req.ShadowVersion,
				Outcome: record.OutcomeTrained, EffectiveFrom: req.ShadowFrom, Features: digits.Hidden,
				Classes: digits.Classes, Weights: weights}
			if err := r.Tuning.Record(&h); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestDemo runs the demo without pacing, and holds it against a replay of the same stream without a broker: what is
// told in event time must not depend on clock, broker, checkpoints or how partitions interleave.
func TestDemo(t *testing.T) {
	testsize.Slow(t)
	o := Options{Length: ForMin, Seed: 1, Headless: true, unpaced: true}
	var story bytes.Buffer
	var encoded []byte
	live, err := Run(t.Context(), o, &Lines{W: &story}, func(r Result) (err error) {
		encoded, err = json.Marshal(r)
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &story)
	}
	checkClosed(t, live)
	checkStory(t, story.String())
	checkKeys(t, encoded)

	want := replayDemo(t, o.Length, o.Seed)
	live.Wall = Wall{}
	if !reflect.DeepEqual(live, want) {
		t.Errorf("live: got %s\nwant what the replay gives, %s", encode(t, live), encode(t, want))
	}
}

// TestSeeds closes the loop for other seeds.
func TestSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("two more runs of some seconds")
	}
	for _, seed := range []uint64{2, 3} {
		checkClosed(t, replayDemo(t, ForMin, seed))
	}
}

func checkClosed(t *testing.T, r Result) {
	t.Helper()
	if !r.LoopClosed || len(r.Reasons) > 0 {
		t.Fatalf("seed %d: loop closed is %v, reasons %q; want true and none", r.Seed, r.LoopClosed, r.Reasons)
	}
	if r.Rows != 12000 || r.Labelled != r.Rows {
		t.Errorf("seed %d: got %d rows, %d labelled; want 12000 of both", r.Seed, r.Rows, r.Labelled)
	}
	if !(*r.AlarmAfter > 0) || *r.AlarmAfterRows <= 0 {
		t.Errorf("seed %d: alarm %v s and %d labelled rows after the shift, want it later", r.Seed, *r.AlarmAfter,
			*r.AlarmAfterRows)
	}
	before, shifted, refitted := r.ECEBeforeShift, r.ECEAfterShift, r.ECEAfterRefit
	if b, a := *before.Raw.ECE, *shifted.Raw.ECE; b > 0.04 || a < 0.1 {
		t.Errorf("seed %d: raw ece before and after the shift: got %.4f and %.4f, want at most 0.04 and at least 0.1",
			r.Seed, b, a)
	}
	if raw, cal := *refitted.Raw.ECE, *refitted.Calibrated.ECE; !(cal < raw/2) ||
		refitted.Raw.N != refitted.Calibrated.N || refitted.Raw.N < 1000 {
		t.Errorf("seed %d: after the refit raw %.4f of %d rows, calibrated %.4f of %d; want below half, "+
			"of the same 1000 or more",
			r.Seed, raw, refitted.Raw.N, cal, refitted.Calibrated.N)
	}
	for _, m := range []Metric{before.Raw, before.Calibrated, shifted.Raw, shifted.Calibrated, refitted.Raw,
		refitted.Calibrated} {
		if m.Null == nil || m.Lo == nil || m.Hi == nil || !(*m.Lo < *m.Hi) || m.N == 0 {
			t.Errorf("seed %d: got %+v, want an ECE with its null expectation, interval and count", r.Seed, m)
		}
	}
}

func checkStory(t *testing.T, story string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(story, "\n"), "\n")
	if len(lines) > 28 {
		t.Errorf("got %d lines, want at most 28:\n%s", len(lines), story)
	}
	if !strings.Contains(story, "REFIT by") {
		t.Errorf("no refit after the first answer:\n%s", story)
	}
	next, last := 0, ""
	words := []string{"accuracy", "kafka at", "ECE", "SHIFT begins", "FIRST ANSWER", "ALARM firing", "NEW HEAD",
		"TRAINED", "HEAD ready", "the loop is closed"}
	for _, line := range lines {
		if next < len(words) && strings.Contains(line, words[next]) {
			next++
		}
		if stamp := line[:8]; stamp != strings.Repeat(" ", 8) {
			if stamp < last {
				t.Errorf("line %q comes after %s", line, last)
			}
			last = stamp
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r > 126 || r < 32 }) {
			t.Errorf("line %q: want plain ASCII", line)
		}
	}
	if next < len(words) {
		t.Errorf("no %q, in the order of %q:\n%s", words[next], words, story)
	}
}

func checkKeys(t *testing.T, encoded []byte) {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &object); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"seed", "rows", "labelled_rows", "shift_at", "alarm_after_shift_s",
		"alarm_after_shift_labelled_rows",
		"ece_before_shift", "ece_after_shift", "ece_after_refit", "calibrators", "alerts", "finetune", "loop_closed",
		"reasons", "state_hash", "wall_clock"} {
		if len(object[key]) == 0 || string(object[key]) == "null" {
			t.Errorf("key %q: got %q, want a value", key, object[key])
		}
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNotClosed judges stories that miss something.
func TestNotClosed(t *testing.T) {
	unlabelled := "0 of 12000 rows got their label"
	firing := func(at string) pipeline.Message {
		when, err := record.ParseTime(at)
		if err != nil {
			t.Fatal(err)
		}
		a := record.Alert{Version: modelVersion, Rule: "calibration-raw", Kind: "anytime", State: "firing", At: when,
			Evidence: &record.AlertEvidence{Direction: "overconfident"}}
		return pipeline.Message{Stream: pipeline.StreamAlerts, Value: encode(t, a), Time: when.UnixNano(), Record: &a}
	}
	for _, c := range []struct {
		outputs []pipeline.Message
		want    []string
	}{
		{nil, []string{unlabelled, "no alarm after the shift", "no new head was asked for"}},
		{[]pipeline.Message{firing("2026-01-01T00:02:40Z")},
			[]string{unlabelled, "the alarm came at 2026-01-01T00:02:40Z, not after the shift at 2026-01-01T00:02:40Z",
				"no new head was asked for"}},
	} {
		s := newStory(newPlan(ForMin, 1), &Lines{W: io.Discard})
		for _, m := range c.outputs {
			s.take(m)
		}
		r, err := s.result()
		if err != nil {
			t.Fatal(err)
		}
		if r.LoopClosed || !reflect.DeepEqual(r.Reasons, c.want) {
			t.Errorf("got closed %v, %q; want false, %q", r.LoopClosed, r.Reasons, c.want)
		}
	}
}

// TestInterrupted stops runs early and in their middle: soon, and with nothing left behind.
func TestInterrupted(t *testing.T) {
	testsize.Slow(t)
	for _, line := range []string{"seed 1", "page at", "SHIFT begins"} {
		t.Setenv("TMPDIR", t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &cancelWriter{word: line, cancel: cancel}
		o := Options{Length: ForMin, Seed: 1, Listen: "127.0.0.1:0", unpaced: true}
		var reported []Result
		_, err := Run(ctx, o, &Lines{W: w}, func(r Result) error {
			reported = append(reported, r)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("at %q: got error %v, want canceled", line, err)
		}
		if streamed := line == "SHIFT begins"; streamed && (len(reported) != 1 || !brokeOff(reported[0])) {
			t.Errorf("at %q: reported %+v, want one result that says that the run broke off", line, reported)
		}
		if took := time.Since(w.at); took > 2*time.Second {
			t.Errorf("at %q: stopped after %v, want at most 2 s", line, took)
		}
		left, err := os.ReadDir(os.Getenv("TMPDIR"))
		if err != nil || len(left) > 0 {
			t.Errorf("at %q: left behind %v, %v; want nothing", line, left, err)
		}
	}
}

func brokeOff(r Result) bool {
	return !r.LoopClosed && slices.Contains(r.Reasons, "the run broke off: context canceled")
}

// cancelWriter cancels when a word is written.
type cancelWriter struct {
	word   string
	cancel context.CancelFunc
	at     time.Time
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	if w.at.IsZero() && strings.Contains(string(p), w.word) {
		w.at = time.Now()
		w.cancel()
	}
	return len(p), nil
}

// TestLines: on a terminal no line is wider than it is, none loses a word, and the stamp stands once.
func TestLines(t *testing.T) {
	const text = "ALARM firing: the model is overconfident beyond the tolerance, by its own estimate since 00:08:20; " +
		"one inside it shows this at most once in 3.3 years"
	for _, width := range []int{0, 29, 30, 60, 61, 80, 500} {
		var b bytes.Buffer
		l := &Lines{W: &b, Colour: true, Width: width}
		l.at(startTime, "%s%s", l.mark("ALARM firing"), strings.TrimPrefix(text, "ALARM firing"))
		got := unmark.Replace(b.String())
		if words := strings.Fields(got); strings.Join(words[1:], " ") != text || words[0] != "00:00:00" {
			t.Errorf("width %d: got %q", width, got)
		}
		for _, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			if width >= stampWidth+leastWidth && len(line) > width {
				t.Errorf("width %d: %d columns: %q", width, len(line), line)
			}
			if len(line) < stampWidth || line[8:stampWidth] != "  " {
				t.Errorf("width %d: text is not where the others' is: %q", width, line)
			}
		}
		if lines := strings.Count(got, "\n"); (width == 0 || width == 29 || width == 500) != (lines == 1) {
			t.Errorf("width %d: %d lines", width, lines)
		}
	}
}

func TestRefitPeriod(t *testing.T) {
	for length := ForMin; length <= ForMax; length += 7 * time.Second {
		p := newPlan(length, 1)
		if 24*time.Hour%p.period != 0 || p.period%paneLength != 0 {
			t.Errorf("for %v: period %v must divide a day and be whole panes", length, p.period)
		}
		if share := float64(p.shiftRow) / float64(p.Rows); share < 0.3 || share > 0.4 {
			t.Errorf("for %v: shift at %.2f of the rows, want about 0.4 and no more", length, share)
		}
	}
}
