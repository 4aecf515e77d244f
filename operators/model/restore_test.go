package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
)

// restoredStats returns the statistics of a shard with the given number of keys and of rows for each, K = 100, and
// three label panes with six prediction panes still open. It also returns the configuration to restore them with.
func restoredStats(tb testing.TB, keys, rows int) (*stats.Operator, stats.Options, *pipeline.Outbox) {
	tb.Helper()
	const k, batch = 100, 500
	cfg := stats.Options{Acc: acc.Config{Bins: 15, SoftBins: 15, SoftTemperature: .01, SampleRows: 1024,
		SampleBytes: 262144, SampleSeed: 7}, Pane: 10 * second, MaxKeys: keys + 1}
	outbox := pipeline.NewOutbox(0, 1, cfg.Pane, 1)
	s := stats.New(cfg, pipeline.Host{Outbox: outbox, Counts: pipeline.NewCounts()})
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]string, keys)
	for i := range values {
		values[i] = fmt.Sprint("c", i)
	}
	for at := 0; at < keys*rows; at += batch {
		b := &arrowio.Batch{Kind: arrowio.Labelled, N: batch, K: k,
			Models: []arrowio.ModelKey{{Model: "m", Version: "1"}}, IDs: make([]arrowio.ID, batch),
			TS: make([]int64, batch), LabelTS: make([]int64, batch), Label: make([]int32,
				batch), Scores: make([]float32, batch*k),
			Slices: []arrowio.SliceColumn{{Name: "cohort", Values: values, Index: make([]int32, batch)}}}
		for i := range batch {
			b.IDs[i] = arrowio.HashID(fmt.Sprint(at + i))
			b.TS[i] = int64(r.IntN(6)) * cfg.Pane
			b.LabelTS[i], b.Label[i] = 6*cfg.Pane+int64(r.IntN(3))*cfg.Pane, int32(r.IntN(k))
			b.Slices[0].Index[i] = int32((at + i) % keys)
			for j := range k {
				b.Scores[i*k+j] = float32(2 * r.NormFloat64())
			}
		}
		if _, err := s.Process(context.Background(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
			return nil,
				nil
		}); err != nil {
			tb.Fatal(err)
		}
	}
	return s, cfg, outbox
}

// benchmarkCheckpoint measures how fast sections are restored into fresh ones, and encoded.
func benchmarkCheckpoint(b *testing.B, sections []pipeline.Section, fresh func() []pipeline.Section) {
	c, err := pipeline.EncodeCheckpoint(sections)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(c.Data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := pipeline.RestoreCheckpoint(c.Data, fresh(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(c.Data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := pipeline.EncodeCheckpoint(sections); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRestoreStats restores and encodes 1,000 keys of K = 100.
func BenchmarkRestoreStats(b *testing.B) {
	s, cfg, outbox := restoredStats(b, 1000, 12)
	sections := func(s *stats.Operator) []pipeline.Section {
		return []pipeline.Section{{Name: "stats", Version: 1, State: s}}
	}
	benchmarkCheckpoint(b, sections(s), func() []pipeline.Section {
		return sections(stats.New(cfg, pipeline.Host{Outbox: outbox, Counts: pipeline.NewCounts()}))
	})
}

// BenchmarkRestoreModel restores and encodes a model task with 1,000 keys of K = 100 and 60 rows each: windows,
// samples, alarms, rules.
func BenchmarkRestoreModel(b *testing.B) {
	s, shard, outbox := restoredStats(b, 1000, 60)
	if err := s.Advance(context.Background(), 10*shard.Pane, nil); err != nil {
		b.Fatal(err)
	}
	outbox.Punctuate(pipeline.Punctuation{Closed: 10})
	cfg := defaultSetup().model
	cfg.Alarm = testAlarm(stage.SignalRaw, stage.SignalCalibrated)
	task := NewTask(cfg, 0, pipeline.NewCounts(), quiet)
	for i, m := range outbox.Pending() {
		if err := task.Take(context.Background(), pipeline.Record{Input: pipeline.Panes, Offset: int64(i),
			Value: m.Value}); err != nil {
			b.Fatal(err)
		}
	}
	benchmarkCheckpoint(b, task.Sections(), func() []pipeline.Section {
		return NewTask(cfg, 0,
			pipeline.NewCounts(), quiet).Sections()
	})
}
