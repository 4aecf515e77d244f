package main

import (
	"flag"
	"fmt"
	"os"
)

type options struct {
	data, out, stage, docs                  string
	runs, delayRuns, calmPeerRuns, peerRuns int
	first, n                                int
}

func main() {
	o := options{}
	flag.StringVar(&o.data, "data", "../shared/data", "folder of the real data")
	flag.StringVar(&o.out, "out", ".cache/detection", "folder for streams and results")
	flag.StringVar(&o.stage, "stage", "ours",
		"ours and peers: measure; export: streams for river itself; report: tables from the results; "+
			"classes, regimes, rules, shifts: tables of their own")
	flag.StringVar(&o.docs, "docs", "", "file whose section \"detection\" the report replaces")
	flag.IntVar(&o.runs, "runs", 1000, "runs of the streams on which nobody may alarm")
	flag.IntVar(&o.first, "first-run", 0,
		"ours: begin with the block of this run; another process may have those before it")
	flag.IntVar(&o.delayRuns, "delay-runs", 300, "runs of the other streams")
	flag.IntVar(&o.calmPeerRuns, "calm-peer-runs", 200,
		"runs that peers have of the streams on which their settings are chosen")
	flag.IntVar(&o.peerRuns, "peer-runs", 100, "runs that peers have of the other streams")
	flag.IntVar(&o.n, "rows", 100_000, "rows of a run without a change")
	flag.Parse()
	stage := map[string]func(options) error{"export": exportAll, "ours": measure, "peers": measurePeers,
		"report":  report,
		"regimes": regimeTable,
		"rules":   ruleTable,
		"shifts":  shiftTable,
		"classes": classTable,
	}[o.stage]
	if stage == nil {
		fmt.Fprintf(os.Stderr, "detection bench: stage is %q, allowed are classes, export, ours, peers, regimes, "+
			"report, rules and shifts\n", o.stage)
		os.Exit(2)
	}
	if err := stage(o); err != nil {
		fmt.Fprintln(os.Stderr, "detection bench:", err)
		os.Exit(1)
	}
}
