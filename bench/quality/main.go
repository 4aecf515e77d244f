package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/plumbline/plumbline/bench/queue"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/section"
)

// splits is the number of random halves.
const splits = 10

func main() {
	data := flag.String("data", "../shared/data", "folder of the logits")
	raw := flag.String("raw", ".cache/bench/quality.jsonl", "raw results, a line each")
	resume := flag.Bool("resume", false, "keep the raw results that are there, of a run that was stopped")
	flag.Parse()
	if _, err := os.Stat(*data); err != nil {
		fmt.Fprintf(os.Stderr, "no tables: %v\n", err)
		return
	}
	if !*resume {
		if err := os.Remove(*raw); err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := run(*data, *raw); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(data, raw string) error {
	models, err := load(data)
	if err != nil {
		return err
	}
	done, err := readScores(raw)
	if err != nil {
		return err
	}
	all, err := measure(models, done, raw)
	if err != nil {
		return err
	}
	text := render(all)
	fmt.Print(text)
	if os.Getenv("PLUMBLINE_DOCS") != "" {
		return section.Replace("bench/results/quality.md", "quality", text)
	}
	return nil
}

// names lists the methods, each that can be wrapped followed by its wrapped form.
func names() []string {
	var out []string
	for _, m := range calibrator.Methods() {
		if out = append(out, m.Name); m.Scalable {
			out = append(out, m.Name+calibrator.Suffix)
		}
	}
	return out
}

// jobs lists what is to be measured, the methods of one split of one model together.
func jobs(models []model) []job {
	var out []job
	for split := range splits {
		for i := range models {
			for _, name := range names() {
				out = append(out, job{&models[i], split, name, 0})
			}
		}
	}
	for _, n := range smallSizes {
		for split := range splits {
			for _, name := range smallMethods {
				out = append(out, job{find(models, smallModel), split, name, n})
			}
		}
	}
	return out
}

// measure runs the jobs that have no score yet, and appends their scores to the file as they come.
func measure(models []model, done map[key]score, raw string) (map[key]score, error) {
	var todo []job
	for _, j := range jobs(models) {
		if _, ok := done[j.keyOf()]; !ok {
			todo = append(todo, j)
		}
	}
	if err := os.MkdirAll(filepath.Dir(raw), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(raw, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	out, count := json.NewEncoder(f), 0
	for s := range queue.Results(todo, runtime.GOMAXPROCS(0), job.run) {
		done[s.key] = s
		err = errors.Join(err, out.Encode(s))
		if count++; count%200 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d fits\n", count, len(todo))
		}
	}
	return done, errors.Join(err, f.Close())
}

// readScores reads the raw results of an earlier run, if there is one.
func readScores(name string) (map[key]score, error) {
	done := map[key]score{}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return done, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s score
		if json.Unmarshal(lines.Bytes(), &s) == nil { // a run that was stopped leaves half a line
			done[s.key] = s
		}
	}
	return done, lines.Err()
}
