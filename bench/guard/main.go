package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/perf/benchmath"
)

// watched is a benchmark that may not become slower.
type watched struct{ what, pkg, name string }

var all = []watched{
	{"row kernel, K = 10", "calib/kernel", "BenchmarkLogitRows/K=10"},
	{"row kernel, K = 100", "calib/kernel", "BenchmarkLogitRows/K=100"},
	{"join in memory, K = 10", "operators/join", "BenchmarkJoin/memory"},
	{"decode, K = 10", "arrowio", "BenchmarkDecode/K=10"},
	{"decode, K = 1000", "arrowio", "BenchmarkDecode/K=1000"},
	{"decode, join, sums, K = 10", "operators", "BenchmarkShard/K=10"},
	{"decode, join, sums, K = 1000", "operators", "BenchmarkShard/K=1000"},
	{"a shard, K = 10", "internal/engine", "BenchmarkShard/K=10/join=default"},
	{"a shard, K = 100", "internal/engine", "BenchmarkShard/K=100/join=default"},
}

func main() {
	var g guard
	flag.StringVar(&g.base, "base", "HEAD~1", "commit to compare with")
	flag.StringVar(&g.head, "head", "", "commit to compare; empty = the working tree")
	flag.IntVar(&g.rounds, "rounds", 6, "runs of each benchmark of each commit")
	flag.DurationVar(&g.run, "run", 300*time.Millisecond, "processor time of a run, about")
	flag.Float64Var(&g.bar, "bar", 0.1, "share by which a benchmark may become slower")
	only := flag.String("only", "", "benchmarks whose description this regular expression matches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	match, err := regexp.Compile(*only)
	if err == nil {
		err = g.compare(ctx, match)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-guard:", err)
		os.Exit(1)
	}
}

type guard struct {
	base, head string
	rounds     int
	run        time.Duration
	bar        float64

	dir  string
	unit meter
}

// compare prints the table; the error names what became slower.
func (g *guard) compare(ctx context.Context, only *regexp.Regexp) error {
	var err error
	if g.dir, err = os.MkdirTemp("", "bench-guard-"); err != nil {
		return err
	}
	defer os.RemoveAll(g.dir)
	g.unit = meterOfMachine(ctx, g.dir)
	before, err := g.checkOut(ctx, "base", g.base)
	if err != nil {
		return err
	}
	after, err := g.checkOut(ctx, "head", g.head)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\t%s\t%s\tchange\tp\t\n", before.name, after.name)
	var slower []string
	for _, w := range all {
		if !only.MatchString(w.what) {
			continue
		}
		d, err := g.judge(ctx, w, before, after)
		var none errNone
		if errors.As(err, &none) {
			fmt.Fprintf(out, "%s\t–\t–\t–\t–\t%v\n", w.what, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.what, err)
		}
		note := ""
		if d.slower(g.bar) {
			slower, note = append(slower, w.what), "SLOWER"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%+.1f %%\t%.3f\t%s\n", w.what, g.unit.text(d.before), g.unit.text(d.after),
			100*(d.after/d.before-1), d.p, note)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Printf("%s an operation, median of %d runs each\n", g.unit.what, g.rounds)
	if len(slower) > 0 {
		return fmt.Errorf("slower than %s by more than %.0f %%, beyond noise: %s", before.name, 100*g.bar,
			strings.Join(slower, "; "))
	}
	return nil
}

// difference is that of two medians, and how likely it is by chance.
type difference struct{ before, after, p float64 }

func (d difference) slower(bar float64) bool { return d.after > d.before*(1+bar) && d.p < 0.02 }

// judge measures a benchmark of both commits, and once more where it became slower.
func (g *guard) judge(ctx context.Context, w watched, before, after tree) (difference, error) {
	var d difference
	for range 2 {
		a, err := g.prepare(ctx, w, before, 0)
		if err != nil {
			return d, err
		}
		b, err := g.prepare(ctx, w, after, a.n)
		if err != nil {
			return d, err
		}
		for round := range g.rounds {
			order := []*series{a, b}
			if round%2 == 1 {
				order = []*series{b, a}
			}
			for _, s := range order {
				if err := s.add(ctx, g.unit); err != nil {
					return d, err
				}
			}
		}
		was, is := a.sample(), b.sample()
		d = difference{benchmath.AssumeNothing.Summary(was, .95).Center,
			benchmath.AssumeNothing.Summary(is, .95).Center, benchmath.AssumeNothing.Compare(was, is).P}
		if !d.slower(g.bar) {
			break
		}
	}
	return d, nil
}

// tree is the source of a commit.
type tree struct{ name, dir string }

func (g *guard) checkOut(ctx context.Context, label, commit string) (tree, error) {
	root, err := output(exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return tree{}, err
	}
	if commit == "" {
		return tree{"this tree", root}, nil
	}
	name, err := output(exec.CommandContext(ctx, "git", "rev-parse", "--short", commit))
	if err != nil {
		return tree{}, err
	}
	dir := filepath.Join(g.dir, label)
	archive := dir + ".tar"
	if err := os.Mkdir(dir, 0o700); err != nil {
		return tree{}, err
	}
	if _, err := output(exec.CommandContext(ctx, "git", "-C", root, "archive", "-o", archive, commit)); err != nil {
		return tree{}, err
	}
	_, err = output(exec.CommandContext(ctx, "tar", "-C", dir, "-xf", archive))
	return tree{name, dir}, err
}

func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return text, nil
}
