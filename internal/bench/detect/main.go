// Command detect measures the detectors of package calib/detect on streams of real confidences: false alarms, delays, late
// labels, models that are wrong from the start. See `make detection-bench`.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/calib/detect"
)

type options struct {
	data, out, stage, only        string
	calmRuns, delayRuns, peerRuns int
	rows                          int
}

func main() {
	o := options{}
	flag.StringVar(&o.data, "data", "../shared/data", "folder of the real data")
	flag.StringVar(&o.out, "out", ".cache/detection", "folder for streams and results")
	flag.StringVar(&o.stage, "stage", "ours", "ours: measure and write the streams for peers; report: tables from the results")
	flag.StringVar(&o.only, "only", "", "one group of streams: false alarms, delay, stably wrong, late labels")
	flag.IntVar(&o.calmRuns, "calm-runs", 1000, "runs of the streams on which nobody may alarm")
	flag.IntVar(&o.delayRuns, "delay-runs", 200, "runs of the other streams")
	flag.IntVar(&o.peerRuns, "peer-runs", 20, "runs of every stream that peers see")
	flag.IntVar(&o.rows, "rows", 100_000, "rows of a run without a change")
	flag.Parse()
	stage := map[string]func(options) error{"ours": measure, "report": report}[o.stage]
	if stage == nil {
		fmt.Fprintf(os.Stderr, "detection bench: stage is %q, allowed ours and report\n", o.stage)
		os.Exit(2)
	}
	if err := stage(o); err != nil {
		fmt.Fprintln(os.Stderr, "detection bench:", err)
		os.Exit(1)
	}
}

// tests are what is measured. The alarm is the first two together, each at half of α.
var tests = []test{
	{name: "headline", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, pane: 100},
	{name: "diagnosis", spec: detect.Spec{Null: detect.NullBin, Epsilon: .05}, pane: 100},
	{name: "bins .02", spec: detect.Spec{Null: detect.NullBin, Epsilon: .02}, pane: 100},
	{name: "change", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, pane: 100, learn: changeAt},
	{name: "bins .02, panes of 20", spec: detect.Spec{Null: detect.NullBin, Epsilon: .02}, pane: 20},
	{name: "change, panes of 20", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, pane: 20, learn: changeAt},
}

// longPanes is the number of tests that have all runs; those with short panes take five times as long.
const longPanes = 4

// result is what ours.json holds of a stream: the row of the first crossing (-1: never) by test, level and run.
type result struct {
	Group, Name    string
	Rows, Change   int
	Bounded        bool
	FirstCrossings [][][]int
}

func measure(o options) error {
	s, err := readScores(o.data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o750); err != nil {
		return err
	}
	streams := append(append(append(calm(s, o.rows), delays(s)...), stable(s)...), lates(s, o.rows)...)
	if err := export(o.out, streams, o.peerRuns); err != nil {
		return err
	}
	real, err := frozen(o.out)
	if err != nil {
		return err
	}
	streams = append(streams, real...)
	var results []result
	for i := range streams {
		st := &streams[i]
		if o.only != "" && o.only != st.group {
			continue
		}
		n := o.delayRuns
		if st.bounded {
			n = o.calmRuns
		}
		few := o.delayRuns
		if st.group == groupReal {
			n, few = 1, 1
		}
		begin := time.Now()
		r, err := runs(st, tests[:longPanes], n)
		if err != nil {
			return err
		}
		short, err := runs(st, tests[longPanes:], few)
		if err != nil {
			return err
		}
		r = append(r, short...)
		fmt.Printf("%s: %s, %d runs of %d rows: %.1f s\n", st.group, st.name, n, st.n, time.Since(begin).Seconds())
		results = append(results, result{st.group, st.name, st.n, st.change, st.bounded, r})
		if err := writeJSON(filepath.Join(o.out, "ours.json"), results); err != nil {
			return err
		}
	}
	return nil
}
