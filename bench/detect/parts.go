package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// part is what is kept of the runs [From, To) of a stream: an interrupted measurement goes on where it was. Code is the
// digest of the sources that the numbers depend on: parts of other code are not used.
type part struct {
	Commit, Code   string
	Group, Name    string
	Rows, Change   int
	Bounded        bool
	From, To       int
	Tests          []string // name and specification
	Levels         []float64
	FirstCrossings [][][]int // row of the first crossing (-1: never) by test, level and run
}

// blockRuns is how many runs a part has.
const blockRuns = 50

// result is what the parts of a stream say together.
type result struct {
	Group, Name    string
	Rows, Change   int
	Bounded        bool
	FirstCrossings [][][]int
	Commits        []string
}

// sources are the files that the numbers depend on.
var sources = []string{"calib/detect/*.go", "bench/detect/tests.go", "bench/detect/data.go", "bench/detect/streams.go",
	"bench/detect/where.go", "bench/detect/late.go", "bench/detect/ours.go"}

// codeDigest returns the digest of the sources and of others, comments included, and of the real streams' files.
func codeDigest(out string, others ...string) (string, error) {
	h := sha256.New()
	for _, pattern := range append(append(slices.Clone(sources), filepath.Join(out, "frozen-*.npy")), others...) {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			_, _ = fmt.Fprintf(h, "%s %d\n", filepath.Base(f), len(b))
			_, _ = h.Write(b)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// commit is the last one that touched what is measured or what measures; "unknown" without git.
func commit() string {
	b, err := exec.Command("git", "log", "-1", "--abbrev=10", "--format=%h", "--", ":/calib/detect",
		":/bench/detect").Output()
	if err != nil || len(b) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func (s *stream) runs(o options) int {
	switch {
	case s.group == groupReal:
		return 1
	case isCalm(s.group):
		return o.runs
	}
	return o.delayRuns
}

// partFile names the part of a stream's block.
func partFile(o options, s *stream, code string, from int) string {
	h := sha256.Sum256([]byte(fmt.Sprintf("%s/%s/%d", s.group, s.name, s.n)))
	return filepath.Join(o.out, "parts", code, fmt.Sprintf("%x-%d.json", h[:8], from))
}

// allStreams are the synthetic and, where frozen.py has run, the real ones.
func allStreams(o options) (*scores, []stream, error) {
	s, err := readScores(o.data)
	if err != nil {
		return nil, nil, err
	}
	real, err := frozen(o.out)
	return s, append(synthetic(s, o.n), real...), err
}

// measure runs every test on every stream, block by block of all streams, and keeps each block as a part.
func measure(o options) error {
	_, streams, err := allStreams(o)
	if err != nil {
		return err
	}
	code, err := codeDigest(o.out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.out, "parts", code), 0o750); err != nil {
		return err
	}
	for from := o.first / blockRuns * blockRuns; from < max(o.runs, o.delayRuns); from += blockRuns {
		for i := range streams {
			s := &streams[i]
			to := min(from+blockRuns, s.runs(o))
			if to <= from {
				continue
			}
			if err := measurePart(o, s, code, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func measurePart(o options, s *stream, code string, from, to int) error {
	file := partFile(o, s, code, from)
	var have part
	switch err := readJSON(file, &have); {
	case err == nil && have.To >= to:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	begin := time.Now()
	r, err := wantedRuns(s, from, to)
	if err != nil {
		return err
	}
	p := part{Commit: commit(), Code: code, Group: s.group, Name: s.name, Rows: s.n * s.weight(),
		Change: s.change * s.weight(), Bounded: s.bounded,
		From: from, To: to, Levels: levels, FirstCrossings: r}
	for _, t := range tests {
		p.Tests = append(p.Tests, fmt.Sprintf("%s: %v ε=%v, panes of %d, reference of %d", t.name, t.spec.Null,
			t.spec.Epsilon, t.pane, t.learn))
	}
	fmt.Printf("%s: %s, runs %d to %d of %d rows: %.1f s\n", s.group, s.name, from, to, s.n,
		time.Since(begin).Seconds())
	return writeJSON(file, p)
}

// wantedRuns measures the tests that have these runs; the others have none of them.
func wantedRuns(s *stream, from, to int) ([][][]int, error) {
	var asked []test
	for _, t := range tests {
		if t.wanted(s.group, from) {
			asked = append(asked, t)
		}
	}
	r, err := runs(s, asked, from, to)
	if err != nil {
		return nil, err
	}
	out := make([][][]int, len(tests))
	for k, t := range tests {
		out[k] = make([][]int, len(levels))
		if t.wanted(s.group, from) {
			out[k], r = r[0], r[1:]
		}
	}
	return out, nil
}

// results reads the parts of all streams, of this code.
func results(o options, streams []stream) ([]result, error) {
	code, err := codeDigest(o.out)
	if err != nil {
		return nil, err
	}
	var out []result
	for i := range streams {
		s := &streams[i]
		var r result
		for from := 0; from < s.runs(o); from += blockRuns {
			var p part
			err := readJSON(partFile(o, s, code, from), &p)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			r.add(p)
		}
		if r.FirstCrossings != nil {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no results of this code; run -stage ours first", o.out)
	}
	return out, nil
}

// add appends the runs of a part.
func (r *result) add(p part) {
	if r.FirstCrossings == nil {
		*r = result{Group: p.Group, Name: p.Name, Rows: p.Rows, Change: p.Change, Bounded: p.Bounded,
			FirstCrossings: p.FirstCrossings}
	} else {
		for t := range p.FirstCrossings {
			for l := range p.FirstCrossings[t] {
				r.FirstCrossings[t][l] = append(r.FirstCrossings[t][l], p.FirstCrossings[t][l]...)
			}
		}
	}
	if !slices.Contains(r.Commits, p.Commit) {
		r.Commits = append(r.Commits, p.Commit)
	}
}
