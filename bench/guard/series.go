package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"
)

// meter is what a run is measured in.
type meter struct {
	what string
	file string // perf's output; "" = processor time
}

// meterOfMachine is instructions where perf can count them, else processor time.
func meterOfMachine(ctx context.Context, dir string) meter {
	m := meter{what: "instructions", file: filepath.Join(dir, "perf")}
	if _, err := m.measure(ctx, "true"); err != nil {
		return meter{what: "processor time"}
	}
	return m
}

func (m meter) text(v float64) string {
	if m.file != "" {
		return fmt.Sprintf("%.4g", v)
	}
	return time.Duration(v).Round(time.Duration(math.Pow(10, math.Floor(math.Log10(v))-2))).String()
}

// measure runs a program and returns what it took: instructions, or ns.
func (m meter) measure(ctx context.Context, args ...string) (float64, error) {
	if m.file != "" {
		args = append([]string{"perf", "stat", "-x,", "-e", "instructions:u", "-o", m.file}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Dir = os.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	if m.file == "" {
		return float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()), nil
	}
	text, err := os.ReadFile(m.file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if count, rest, ok := strings.Cut(line, ","); ok && strings.Contains(rest, "instructions") {
			return strconv.ParseFloat(count, 64)
		}
	}
	return 0, errors.New("perf has counted nothing")
}

// series is the runs of one benchmark of one commit.
type series struct {
	program, name string
	n             int     // operations of a run
	start         float64 // what a run of one operation takes
	took          []float64
}

// errNone is a benchmark that a commit does not have.
type errNone struct{ tree string }

func (e errNone) Error() string { return "not in " + e.tree }

// prepare builds the benchmark and chooses n, so that a run takes about as long as it should; n != 0 is given.
func (g *guard) prepare(ctx context.Context, w watched, t tree, n int) (*series, error) {
	s := &series{program: filepath.Join(g.dir, strings.ReplaceAll(t.name+"-"+w.pkg, "/", "-")), n: n}
	var levels []string
	for level := range strings.SplitSeq(w.name, "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
	}
	s.name = strings.Join(levels, "/")
	if _, err := os.Stat(s.program); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(t.dir, w.pkg)); err != nil {
			return nil, errNone{t.name}
		}
		build := exec.CommandContext(ctx, "go", "test", "-trimpath", "-c", "-o", s.program, "./"+w.pkg)
		build.Dir = t.dir
		if _, err := output(build); err != nil {
			return nil, err
		}
	}
	if list, err := output(exec.CommandContext(ctx, s.program, "-test.list", levels[0])); err != nil || list == "" {
		return nil, errors.Join(err, errNone{t.name})
	}
	if err := s.started(ctx, g.unit); err != nil || n != 0 {
		return s, err
	}
	// The number of operations that take a tenth says how many are enough. It is chosen by processor time in any unit.
	for s.n = 1; s.n < 1<<30; s.n *= 4 {
		took, err := meter{}.measure(ctx, s.args()...)
		if err != nil {
			return nil, err
		}
		idle, err := meter{}.measure(ctx, s.with(1)...)
		if err != nil {
			return nil, err
		}
		if took -= idle; took > float64(g.run)/10 {
			s.n = max(1, int(float64(s.n)*float64(g.run)/took))
			return s, nil
		}
	}
	return nil, errors.New("the benchmark takes no time")
}

// started measures a run of one operation, the least of three.
func (s *series) started(ctx context.Context, m meter) error {
	s.start = math.Inf(1)
	for range 3 {
		v, err := m.measure(ctx, s.with(1)...)
		if err != nil {
			return err
		}
		s.start = min(s.start, v)
	}
	return nil
}

func (s *series) args() []string { return s.with(s.n) }

func (s *series) with(n int) []string {
	return []string{s.program, "-test.run", "^$", "-test.bench", s.name, "-test.benchtime", fmt.Sprintf("%dx", n)}
}

func (s *series) add(ctx context.Context, m meter) error {
	v, err := m.measure(ctx, s.args()...)
	s.took = append(s.took, max(1, v-s.start)/float64(s.n))
	return err
}

func (s *series) sample() *benchmath.Sample {
	return benchmath.NewSample(s.took, &benchmath.DefaultThresholds)
}
