package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

const (
	second = int64(1e9)
	pane   = 10 * second
	start  = 1_750_000_000 * second
)

// change is a calibrator that takes force at a row.
type change struct {
	row    int
	cal    calibrator.Calibrator
	method string
	reason string
	back   bool // the identity returned, because too much was lost to the raw scores
}

// product is the default configuration of plumbline run but for the period, which is a day of the stream's rows, and
// refit.follow, which changes nothing that is published.
func product() config.Config {
	c := config.Default()
	c.Refit.Follow = true
	c.Refit.Period = time.Duration(dayRows * pane / int64(paneRows))
	return c
}

// maxRows is how many of the latest rows a refit of the product uses.
var maxRows = product().Refit.MaxRows

// taskConfig is the model task of the product, without windows and slices.
func taskConfig() model.Config {
	c := product()
	return model.Config{Pane: pane, Acc: acc.Config{SampleRows: c.Sample.RowsPerCell,
		SampleBytes: c.Sample.BytesPerCell,
		SampleSeed:  1}, Bins: c.Stats.Bins, CDFNu: c.Stats.CDFNu, Resamples: 50, SampleRows: c.Sample.Rows,
		Alarm: &c.Alarm, Rules: c.Rules, Refit: c.Refit}
}

// course is what a model task makes of a stream: the calibrators that it published, and all changes of what is served
// where the top confidence follows between them.
type course struct{ published, followed []change }

// plumbline runs a model task over a stream.
func plumbline(s *stream, cfg model.Config) (out course, err error) {
	task := model.NewTask(cfg, 0, pipeline.NewCounts(), slog.New(slog.DiscardHandler))
	offset := int64(0)
	take := func(m *pipeline.PaneMessage) error {
		m.Of, m.Seq, m.Length = 1, uint64(offset)+1, pane
		err := task.Take(context.Background(), pipeline.Record{Input: pipeline.Panes, Offset: offset,
			Value: pipeline.AppendPane(nil, m)})
		offset++
		return err
	}
	for from := 0; from < s.rows(); from += paneRows {
		set, err := paneSet(s, from, min(from+paneRows, s.rows()), cfg.Acc)
		if err != nil {
			return out, err
		}
		body, err := set.AppendBinary(nil)
		if err != nil {
			return out, err
		}
		at := start/pane + int64(from/paneRows)
		if err := take(&pipeline.PaneMessage{Model: s.name, LabelPane: at,
			Cells: []pipeline.Cell{{Version: "1", K: s.k, PredictionPane: at, Set: body}}}); err != nil {
			return out, err
		}
		if err := take(&pipeline.PaneMessage{Punctuation: true, Closed: at + 1}); err != nil {
			return out, err
		}
		if err := task.Settle(context.Background()); err != nil {
			return out, err
		}
		for _, m := range task.Outputs() {
			// It takes force at the end of this pane.
			if err := out.add(m, from+paneRows); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// add takes an output of the task.
func (v *course) add(m pipeline.Message, row int) error {
	switch c := m.Record.(type) {
	case *record.Calibrator:
		if m.Stream != pipeline.StreamCalibrators || !c.Published {
			return nil
		}
		cal, err := calibrator.Decode(c.Calibrator)
		if err != nil {
			return err
		}
		v.published = append(v.published, change{row: row, cal: cal, method: c.Method, reason: c.Reason,
			back: c.Reason == "rollback" && c.Evidence.LogENeeded == 0})
		v.followed = append(v.followed, v.published[len(v.published)-1])
	case *record.TopCorrection:
		base := calibrator.Calibrator(calibrator.Identity{})
		if n := len(v.published); n > 0 {
			base = v.published[n-1].cal
		}
		by := calibrator.Correction{Power: c.Power,
			TopCorrection: calibrator.TopCorrection{Slope: c.Slope, Intercept: c.Intercept}}
		for _, x := range c.Apart {
			by.Apart = append(by.Apart, calibrator.ClassCorrection{Class: x.Class,
				TopCorrection: calibrator.TopCorrection{Slope: x.Slope, Intercept: x.Intercept}})
		}
		cal, err := calibrator.Correct(base, by)
		if err != nil {
			return err
		}
		v.followed = append(v.followed, change{row: row, cal: cal, method: base.Method(), reason: "follow"})
	}
	return nil
}

// paneSet is what a shard sends of some rows, all predicted and labelled in one pane.
func paneSet(s *stream, from, to int, cfg acc.Config) (*acc.Set, error) {
	cfg.K = s.k
	set, err := acc.New(cfg)
	if err != nil {
		return nil, err
	}
	z, p := make([]float64, s.k), make([]float64, s.k)
	for i := from; i < to; i++ {
		row := s.z[i*s.k : (i+1)*s.k]
		for j, x := range row {
			z[j] = float64(x)
		}
		r, ok := kernel.Logits(z, p)
		if !ok {
			return nil, fmt.Errorf("%s: row %d is not finite", s.name, i)
		}
		y := int(s.labels[i])
		if err := set.Label(r, p, acc.Truth{Class: y, NLL: kernel.NLL(r, z, y, false), Weight: 1,
			Served: math.NaN()}); err != nil {
			return nil, err
		}
		ts := start + int64(i/paneRows)*pane + int64(i%paneRows)*pane/int64(paneRows)
		if err := set.AddSample(acc.SampleRow{ID: arrowio.HashIntID(uint64(i)), TS: ts, LabelTS: ts, W: 1,
			Y: s.labels[i],
			Z: row}); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// schedule refits the temperature at the end of every week on its latest rows, and puts it in force unseen.
func schedule(s *stream) ([]change, error) {
	var out []change
	for end := weekRows; end < s.rows(); end += weekRows {
		c, err := fitted("temperature", s, end-maxRows, end)
		if err != nil {
			return nil, err
		}
		out = append(out, change{end, c, "temperature", "schedule", false})
	}
	return out, nil
}

// fixedMethods are those whose calibrator, fitted on the latest rows of the first week, is kept for ever.
func fixedMethods() (out []string) {
	for _, m := range calibrator.Methods() {
		if !strings.HasPrefix(m.Name, "metacal") && m.Name != "parameterised_temperature" && m.Name != "matrix" {
			out = append(out, m.Name)
		}
	}
	return out
}

func fixed(method string, s *stream) ([]change, error) {
	if method == "identity" {
		return nil, nil
	}
	c, err := fitted(method, s, weekRows-maxRows, weekRows)
	return []change{{weekRows, c, method, "once", false}}, err
}

func fitted(method string, s *stream, from, to int) (calibrator.Calibrator, error) {
	c, _, err := calibrator.Fit(method, calibrator.NewData(s.z[from*s.k:to*s.k], s.k, s.labels[from:to], nil),
		calibrator.Options{Seed: 1})
	if err != nil {
		return nil, fmt.Errorf("%s: %s on rows %d to %d: %w", s.name, method, from, to, err)
	}
	return c, nil
}
