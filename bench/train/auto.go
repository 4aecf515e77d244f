package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/plumbline/plumbline/bench/queue"
	"github.com/plumbline/plumbline/internal/section"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// The bars of auto on rows in order of time: by how much the NLL of the rows that follow may be above that of the head
// that serves, and above that of the best candidate in a share of the windows.
const (
	barWorse     = 0.01
	barNear      = 0.02
	barNearShare = 0.75
)

// autoWindow is auto on one window.
type autoWindow struct {
	stream *stream
	window int
	rows   [3]int // that train, validate and follow
	// now, got, rash and best are on the rows that follow: the head that serves, what auto leaves, what it would leave
	// without its guards, and the best of the candidates and the head that serves.
	now, got, rash, best outcome
	chosen, bestName     string
	rashT                float64
	err                  error
}

// keep notes the candidates' heads as they are trained.
func keep(in recipe.Input, heads map[string]*head.Head) recipe.Train {
	b := backend.Go{GEMM: products()}
	return func(ctx context.Context, c recipe.Named) (*head.Head, recipe.Report, error) {
		h, r, err := recipe.Run(ctx, c.Config, in, b, nil)
		if err == nil {
			heads[c.Name] = h
		}
		return h, r, err
	}
}

func (w autoWindow) run() autoWindow {
	p, err := w.stream.window(w.window)
	if err != nil {
		w.err = err
		return w
	}
	w.rows = [3]int{p.in.Train.N(), p.in.Valid.N(), p.test.N()}
	heads := map[string]*head.Head{}
	h, r, err := recipe.RunAutoWith(context.Background(), recipe.Candidates(1), p.in, keep(p.in, heads))
	if err != nil {
		w.err = err
		return w
	}
	w.chosen = r.Chosen
	w.now, w.got = on(p.in.Current, p.test, 1), on(h, p.test, 1)
	w.best, w.bestName = w.now, recipe.CurrentName
	for _, s := range r.Tried {
		// The average is not among the heads that were trained.
		if c := heads[s.Name]; c != nil {
			if o := on(c, p.test, s.Temperature); o.NLL < w.best.NLL {
				w.best, w.bestName = o, s.Name
			}
		}
	}
	if w.got.NLL < w.best.NLL {
		w.best, w.bestName = w.got, w.chosen
	}
	w.err = w.unguarded(p, heads)
	return w
}

// unguarded is the cross-entropy of the lowest validation NLL with the temperature of all validation rows, whatever it
// is, and whether or not it beats the head that serves.
func (w *autoWindow) unguarded(p problem, heads map[string]*head.Head) error {
	lowest := math.Inf(1)
	for _, c := range recipe.Candidates(1) {
		h := heads[c.Name]
		if !c.Baseline || h == nil {
			continue
		}
		t, fit, err := fitTemperature(h, p.in.Valid)
		if err != nil {
			return err
		}
		if fit.NLLAfter < lowest {
			lowest, w.rash, w.rashT = fit.NLLAfter, on(h, p.test, t.T()), t.T()
		}
	}
	return nil
}

// on is a head at a temperature on rows.
func on(h *head.Head, rows *data.Set, t float64) outcome {
	o, err := ratedAt(h, rows, t)
	if err != nil {
		panic(err) // rows and logits are ours
	}
	return o
}

func (w autoWindow) worse() bool { return w.got.NLL > w.now.NLL+barWorse }
func (w autoWindow) near() bool  { return w.got.NLL <= w.best.NLL+barNear }

// autoSet runs auto on all windows and prints its table.
func (o options) autoSet() error {
	list, err := streams(o.folder)
	if err != nil {
		return err
	}
	var todo []autoWindow
	for _, s := range list {
		for i := range windows {
			todo = append(todo, autoWindow{stream: s, window: i})
		}
	}
	done := map[string]autoWindow{}
	name := func(w autoWindow) string { return fmt.Sprint(w.stream.name, w.window) }
	for w := range queue.Results(todo, o.jobs, autoWindow.run) {
		if w.err != nil {
			return fmt.Errorf("%s, window %d: %w", w.stream.name, w.window+1, w.err)
		}
		done[name(w)] = w
	}
	for i, w := range todo {
		todo[i] = done[name(w)]
	}
	text := autoText(todo)
	fmt.Print(text)
	if os.Getenv("PLUMBLINE_DOCS") == "" {
		return nil
	}
	return section.Replace("bench/results/train-auto.md", "train-auto", text)
}

func autoText(list []autoWindow) string {
	var b strings.Builder
	header(&b, "bar", "tuned on", "held out", "all", "")
	count := func(f func(autoWindow) bool, held, tuned bool) (hits, n int) {
		for _, w := range list {
			if w.stream.held && held || !w.stream.held && tuned {
				n++
				if f(w) {
					hits++
				}
			}
		}
		return hits, n
	}
	line := func(title string, f func(autoWindow) bool, holds func(hits, n int) bool) {
		cells := []string{title}
		for _, of := range [][2]bool{{false, true}, {true, false}, {true, true}} {
			hits, n := count(f, of[0], of[1])
			cells = append(cells, fmt.Sprintf("%d of %d", hits, n))
		}
		verdict := "**misses**"
		if holds == nil {
			verdict = ""
		} else if holds(count(f, true, true)) {
			verdict = "holds"
		}
		b.WriteString("| " + strings.Join(append(cells, verdict), " | ") + " |\n")
	}
	line("NLL of the rows that follow more than .01 above the head that serves: none", autoWindow.worse,
		func(hits, _ int) bool { return hits == 0 })
	line("within .02 of the best candidate: 75 %", autoWindow.near,
		func(hits, n int) bool { return float64(hits) >= barNearShare*float64(n) })
	line("without the guards: more than .01 above the head that serves",
		func(w autoWindow) bool { return w.rash.NLL > w.now.NLL+barWorse }, nil)
	b.WriteString("\n")
	header(&b, "stream", "rows: train, validate, follow", "NLL now", "`auto`", "recipe", "best", "its recipe",
		"without guards", "its T", "ECE now", "`auto`", "without guards")
	for _, w := range list {
		title := fmt.Sprintf("%s, %d", w.stream.title, w.window+1)
		if w.stream.held {
			title += " (held out)"
		}
		fmt.Fprintf(&b, "| %s | %d, %d, %d | %.4f | %+.4f | %s | %+.4f | %s | %+.4f | %.2f | %.1f | %.1f | %.1f |\n",
			title, w.rows[0], w.rows[1], w.rows[2], w.now.NLL, w.got.NLL-w.now.NLL, w.chosen, w.best.NLL-w.now.NLL,
			w.bestName, w.rash.NLL-w.now.NLL, w.rashT, 100*w.now.ECE, 100*w.got.ECE, 100*w.rash.ECE)
	}
	b.WriteString("\n")
	return b.String()
}
