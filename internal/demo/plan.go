package demo

import (
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/examples/digits"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/pipeline"
)

// What the demo's stream is. Event time runs speed times as fast as the clock that paces the producer.
const (
	modelName    = "digits"
	modelVersion = "1"
	speed        = 20
	eventRate    = 30 // rows a second of event time: 600 a second of the clock
	paneLength   = 10 * time.Second

	delayMin = 5 * time.Second // from a row to its label, in event time
	delayMax = time.Minute

	windowName = "last1000" // what the story and the result are told from
	runWindow  = "run"      // the window that holds everything
	ruleName   = "excess-ece"

	ForMin = 20 * time.Second // shorter runs end before there are labelled rows of the new calibrator
	ForMax = time.Hour        // runWindow is one window of 24 h of event time
)

// startTime is the event time of the first row, whatever the date.
var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// plan is what follows from --for and --seed alone, so that these two decide every result in event time.
type plan struct {
	Seed  uint64
	Rows  int64
	Shift time.Time // event time of the first shifted row

	shiftRow int64
	period   time.Duration // event time between refits by period
	// shadowAfter is from the request for a head to the first row that it runs on: time to train it in, where there is
	// some.
	shadowAfter time.Duration
}

// newPlan plans a run of so much wall-clock time. The shift comes right after the first refit by period, at 40 % of
// the run or a little before it, so that the refit on the alarm has the time to the second for itself.
func newPlan(length time.Duration, seed uint64) plan {
	total := length * speed
	period := refitPeriod(total * 2 / 5)
	return plan{
		Seed: seed, Rows: int64(total / time.Second * eventRate), period: period,
		Shift: startTime.Add(period), shiftRow: int64(period/time.Second) * eventRate,
		shadowAfter: max(60*time.Second, min(total/10, 2*time.Minute).Truncate(paneLength)),
	}
}

// refitPeriod is the longest period of whole panes, at most limit, that divides a day: periods count from the Unix
// epoch, so one begins at startTime. limit is at least a pane.
func refitPeriod(limit time.Duration) time.Duration {
	p := limit.Truncate(paneLength)
	for 24*time.Hour%p != 0 {
		p -= paneLength
	}
	return p
}

// feed returns the messages of the run.
func (p plan) feed(net *digits.Network, held digits.Set, partitions int, gate hold) (*feed.Feed, error) {
	src := &digitsSource{gate: gate, stream: digits.NewStream(net, held,
		digits.StreamOptions{Seed: p.Seed, ShiftAt: p.shiftRow})}
	return feed.New(src, feed.Options{
		Partitions: partitions, EventRate: eventRate, Start: startTime.UnixNano(),
		DelayMin: delayMin, DelayMax: delayMax, Batch: 256, FlushEvery: 5 * time.Second,
		Seed: p.Seed, Limit: p.Rows, End: true, Pane: paneLength,
	})
}

// config is the configuration that the run has: that of `plumbline run`, with everything in dir.
func (p plan) config(broker, dir, listen string) config.Config {
	c := config.Default()
	c.Kafka.Brokers = []string{broker}
	c.Group = "demo"
	c.Topics.Keyed = true // the producer splits by id
	c.Models = []config.Model{{Name: modelName, Classes: digits.Classes}}
	c.Slices.Columns = []string{"device"}
	// Inputs are never idle by the clock, which would close panes early on a slow machine: the producer ends the
	// stream with a watermark instead.
	c.EventTime = config.EventTime{Pane: paneLength, AllowedLateness: paneLength, MaxAhead: 24 * time.Hour}
	c.Join.Wait = 5 * time.Minute
	c.Windows = []window.Config{
		{Name: windowName, Kind: window.KindRows, Rows: 1000},
		{Name: "2m", Kind: window.KindTime, Size: 2 * time.Minute, Slide: 30 * time.Second},
		{Name: runWindow, Kind: window.KindTime, Size: 24 * time.Hour},
	}
	c.Rules = []rule.Config{{
		Name: ruleName, Signal: "calibrated", Severity: "critical", Rows: 1000, MinRows: 500, WarmupRows: 1000,
		Fire: 0.05, Clear: 0.03, For: 20 * time.Second, ClearFor: 20 * time.Second,
	}}
	c.Refit.Period = p.period
	c.Refit.FreshRows, c.Refit.MinRows, c.Refit.MaxRows = 1500, 500, 3000
	// The rule looks back on rows of the old calibrator for a while; a second refit meanwhile would be for nothing.
	c.Refit.Cooldown = 2 * time.Minute
	c.Calibrated.Enabled = true
	c.Checkpoints = pipeline.CheckpointConfig{Dir: filepath.Join(dir, "state"), Interval: 200 * time.Millisecond,
		Keep: 2}
	c.HTTP.Listen = listen
	p.tune(&c, dir)
	return c
}

// digitsSource gives the rows of the digits stream to the feed.
type digitsSource struct {
	stream *digits.Stream
	row    digits.Row
	device [1]string
	gate   hold // nil: none
	next   int64
}

// Schema implements feed.Source.
func (s *digitsSource) Schema() feed.Fields {
	return feed.Fields{Model: modelName, Version: modelVersion, K: digits.Classes, D: digits.Hidden,
		Slices: []string{"device"}}
}

// Next implements feed.Source; it never ends by itself.
func (s *digitsSource) Next(row *feed.Row) error {
	if s.gate != nil {
		if err := s.gate(startTime.Add(time.Duration(s.next) * time.Second / eventRate)); err != nil {
			return err
		}
	}
	s.next++
	s.stream.Next(&s.row)
	s.device[0] = s.row.Device
	*row = feed.Row{ID: s.row.ID, Scores: s.row.Logits[:], Label: s.row.Label, Features: s.row.Features[:], Weight: 1,
		Slices: s.device[:]}
	return nil
}
