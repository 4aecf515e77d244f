package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/plumbline/plumbline/internal/section"
)

// seeds of every cell, and of those of the special settings, which are many.
const (
	seeds        = 5
	specialSeeds = 5
)

func main() {
	var o options
	flag.StringVar(&o.folder, "data", "../shared/data", "folder of the features")
	flag.StringVar(&o.out, "out", ".cache/bench/train", "folder of the raw results")
	flag.StringVar(&o.set, "set", "recipes", "recipes; auto, on drifting streams; or methods, with unknown rows")
	flag.BoolVar(&o.fresh, "fresh", false, "forget the results that are there")
	flag.StringVar(&o.stage, "stage", "all", "trials, report or all")
	flag.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "trials at a time")
	flag.StringVar(&o.which.only, "only", "", "run the trials whose setting and method, setting/method, contain this")
	flag.StringVar(&o.which.skip, "skip", "", "leave out this method")
	flag.Parse()
	if _, err := os.Stat(o.folder); err != nil {
		fmt.Fprintf(os.Stderr, "no tables: %v\n", err)
		return
	}
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	folder, out, stage, set string
	which                   choice
	jobs                    int
	fresh                   bool
}

func (o options) run() error {
	switch o.set {
	case "auto":
		return o.autoSet()
	case "methods":
		return o.methodsSet()
	case "recipes":
	default:
		return fmt.Errorf("-set %s, allowed recipes, auto, methods", o.set)
	}
	if o.stage != "trials" && o.stage != "report" && o.stage != "all" {
		return fmt.Errorf("-stage %s, allowed trials, report, all", o.stage)
	}
	st, err := openStore(filepath.Join(o.out, "trials.jsonl"), o.fresh)
	if err != nil {
		return err
	}
	if o.stage != "report" {
		s, err := load(o.folder)
		if err != nil {
			return err
		}
		if err := st.measure(s, o.which, o.jobs, commit()); err != nil {
			return err
		}
	}
	if o.stage == "trials" {
		return nil
	}
	speed, err := readSpeed(filepath.Join(o.out, "speed.json"))
	if err != nil {
		return err
	}
	text := render(results(st.done))
	fmt.Print(text, speed)
	if os.Getenv("PLUMBLINE_DOCS") == "" {
		return nil
	}
	if err := section.Replace("bench/results/train.md", "train", text); err != nil {
		return err
	}
	if speed == "" {
		return nil
	}
	return section.Replace("bench/results/train-speed.md", "train-speed", speed)
}

// choice says which trials are run.
type choice struct{ only, skip string }

func (c choice) takes(k key) bool {
	return strings.Contains(k.Setting+"/"+k.Method, c.only) && (c.skip == "" || k.Method != c.skip)
}

// decides are the paths whose state decides the numbers.
var decides = []string{"trainer", "calib", "bench/train", ":(exclude)*_test.go"}

// commit names the tree that a trial was run on, with a + where what decides its numbers is not committed.
func commit() string {
	b, err := exec.Command("git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(b))
	if b, err = exec.Command("git", append([]string{"status", "--porcelain", "--untracked-files=no", "--"},
		decides...)...).Output(); err != nil || len(b) > 0 {
		name += "+"
	}
	return name
}

// table is settings and methods that are all tried.
type table struct {
	settings []setting
	methods  []method
	seeds    uint64
}

// tables are A (drift) and B (clean), the ablation, and the special settings.
func tables() (drift, ideal, parts, more table) {
	drift, ideal = table{drifts(), methods(), seeds}, table{[]setting{clean()}, methods(), seeds}
	parts = table{[]setting{clean(), drifts()[1]}, ablation(), seeds}
	return drift, ideal, parts, table{special(), fewMethods(), specialSeeds}
}

// all lists the jobs, those of tables A and B and of the ablation first.
func all() []job {
	var out []job
	drift, ideal, parts, more := tables()
	for _, list := range [][]table{{drift, ideal, parts}, {more}} {
		for seed := range uint64(seeds) {
			for _, t := range list {
				if seed < t.seeds {
					out = append(out, t.jobs(seed)...)
				}
			}
		}
	}
	return out
}

func (t table) jobs(seed uint64) []job {
	var out []job
	for _, s := range t.settings {
		for _, m := range t.methods {
			for point := range max(1, len(m.grid)) {
				out = append(out, job{s, m, key{s.name, m.name, seed, point}})
			}
		}
	}
	return out
}
