package model

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// benchPane returns a label pane of 200 rows.
func benchPane(b *testing.B, cfg *Config, pane int64) *stage.Pane {
	shape := cfg.Acc
	shape.K = 4
	set, err := acc.New(shape)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]float64, 4)
	for i := range 200 {
		z := []float64{float64(i%17) / 4, float64(i%5) / 3, 0, float64(i%7) / 7}
		r, _ := kernel.Logits(z, p)
		if err := set.Predict(r, 1); err != nil {
			b.Fatal(err)
		}
		truth := acc.Truth{Class: i % 4, NLL: kernel.NLL(r, z, i%4, false), Weight: 1, Lag: 1e9, Served: 1}
		if err := set.Label(r, p, truth); err != nil {
			b.Fatal(err)
		}
	}
	return &stage.Pane{Index: pane, End: (pane + 1) * cfg.Pane, Cells: []stage.Cell{{PredictionPane: pane, Set: set}},
		Labelled: 200}
}

// BenchmarkAlarmKeys processes one label pane of 1,000 slices with 200 rows each: alarms, e-BH, inhibition. bytes/key
// is the memory of the alarms' state and of the reference for unlabelled rows.
func BenchmarkAlarmKeys(b *testing.B) {
	for _, signals := range [][]string{{stage.SignalRaw}, {stage.SignalRaw, stage.SignalCalibrated}} {
		b.Run(fmt.Sprint(len(signals), " signals"), func(b *testing.B) {
			const keys = 1000
			s := alarmSetup(testAlarm(signals...))
			s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 10_000, Alpha: .001,
				Slices: true}
			task := s.task()
			m := task.newModel("m")
			task.models["m"] = m
			v, err := task.versionOf(m, "v", 4)
			if err != nil {
				b.Fatal(err)
			}
			var names []string
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range keys {
				names = append(names, fmt.Sprintf("tenant=%04d", i))
				v.key(names[i], &task.cfg)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			in := benchPane(b, &task.cfg, 1)
			in.Scored = stage.Scored{1: in.Cells[0].Set}
			b.ResetTimer()
			for range b.N {
				in.Index++
				in.End += task.cfg.Pane
				for _, name := range names {
					for i, e := range task.cfg.table {
						if e.name == "window" {
							continue
						}
						if err := v.keys[name].states[i].Observe(in); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := (&stepper{&task.fleet, v}).close(names, in.Index); err != nil {
					b.Fatal(err)
				}
				task.out = nil
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "bytes/key")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/keys, "µs/key-pane")
		})
	}
}
