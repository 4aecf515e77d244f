package worldtest

import (
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/window"
)

// Accumulators returns the configuration of the statistics of a world.
func Accumulators() acc.Config {
	return acc.Config{
		Bins: 15, SoftBins: 15, SoftTemperature: .01, SampleRows: 1024, SampleBytes: 262144, SampleSeed: 7,
	}
}

// Windows returns one window of each kind, by time and by rows.
func Windows() []window.Config {
	return []window.Config{
		{Name: "tumbling", Kind: "time", Size: 60 * time.Second, Slide: 60 * time.Second},
		{Name: "sliding", Kind: "time", Size: 60 * time.Second, Slide: 20 * time.Second},
		{Name: "rows", Kind: "rows", Rows: 300},
		{Name: "rows-tumbling", Kind: "rows", Rows: 300, Every: 300},
	}
}

// Rules returns one rule, on the excess of the ECE.
func Rules() []rule.Config {
	return []rule.Config{{
		Name: "excess", Signal: "calibrated", Severity: "warning", Rows: 400, MinRows: 200, WarmupRows: 200,
		Fire: .05, Clear: .03, For: 10 * time.Second, ClearFor: 10 * time.Second, Slices: true,
	}}
}

// Refits returns refits by period and by alarm that come within a stream of some minutes.
func Refits() refit.Config {
	return refit.Config{
		Method: "temperature", Period: 60 * time.Second, OnAlarm: true, FreshRows: 300, MinRows: 200, MaxRows: 2000,
		TestShare: .3, Delay: 2, Alpha: .05, ValidationRows: 1000, RollbackPanes: 10_000, Follow: true,
		MaxECERise: .01, MaxAccuracyDrop: .01, Cooldown: 20 * time.Second,
	}
}
