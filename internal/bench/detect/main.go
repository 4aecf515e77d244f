// Command detect measures the detectors of package calib/detect on streams of real confidences: false alarms, delays, late
// labels, models that are wrong from the start. See `make detection-bench`.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/plumbline/plumbline/calib/detect"
)

func main() {
	o := options{}
	flag.StringVar(&o.data, "data", "../shared/data", "folder of the real data")
	flag.IntVar(&o.calmRuns, "calm-runs", 1000, "runs of the streams on which nobody may alarm")
	flag.IntVar(&o.delayRuns, "delay-runs", 200, "runs of the streams with a change")
	flag.IntVar(&o.rows, "rows", 100_000, "rows of a run without a change")
	flag.StringVar(&o.only, "only", "", "one group of streams")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "detection bench:", err)
		os.Exit(1)
	}
}

type options struct {
	data, only                string
	calmRuns, delayRuns, rows int
}

// tests are what is measured: headline and diagnosis with their defaults, the sensitive headline, change mode.
var tests = []test{
	{name: "ece .02", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}}, {name: "bin .05", spec: detect.Spec{Null: detect.NullBin, Epsilon: .05}},
	{name: "bin .02", spec: detect.Spec{Null: detect.NullBin, Epsilon: .02}},
	{name: "change", spec: detect.Spec{Null: detect.NullECE, Epsilon: .02}, learn: changeAt},
}

func run(o options) error {
	s, err := readScores(o.data)
	if err != nil {
		return err
	}
	var all []stream
	all = append(append(append(calm(s, o.rows), delays(s)...), stable(s)...), lates(s, o.rows)...)
	for _, st := range all {
		if o.only != "" && st.group != o.only {
			continue
		}
		n := o.delayRuns
		if st.bounded {
			n = o.calmRuns
		}
		begin := time.Now()
		out, err := runs(&st, tests, n)
		if err != nil {
			return err
		}
		print1(&st, out, time.Since(begin))
	}
	return nil
}
