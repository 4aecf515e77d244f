package offline

import (
	"fmt"
	"io"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/texttable"
)

// Print writes the result as text.
func (r *FitResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", r.Method, r.Description)
	fmt.Fprintf(w, "%d rows, K = %d with %d classes among the labels; %s\n", r.Fit.Rows, r.K, r.Fit.Classes,
		texttable.Seconds(r.Seconds))
	before, after := r.Fit.NLLBefore, r.Fit.NLLAfter
	lines := [][]string{
		{"", "before", "after", "difference"},
		{"nll of the fitted rows", texttable.NLL(before), texttable.NLL(after), texttable.Signed(after - before)},
	}
	if h := r.Holdout; h != nil {
		fmt.Fprintln(w, r.Split)
		b, a := h.Before, h.After
		lines = append(lines,
			[]string{"nll, held out", texttable.NLL(b.NLL), texttable.NLL(a.NLL), texttable.Difference(h.Difference)},
			[]string{"accuracy", texttable.Short(b.Accuracy), texttable.Short(a.Accuracy)},
			[]string{"ece", texttable.Short(b.ECE), texttable.Short(a.ECE)},
			[]string{"  95 % interval", texttable.Interval(b.ECELo, b.ECEHi), texttable.Interval(a.ECELo, a.ECEHi)},
			[]string{"  if calibrated", texttable.Short(b.ECENull), texttable.Short(a.ECENull)},
			[]string{"brier", texttable.Short(b.Brier), texttable.Short(a.Brier)},
		)
	}
	if err := texttable.Print(w, lines, 1); err != nil {
		return err
	}
	for _, warning := range r.Fit.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	if r.Output != "" && r.Output != "-" {
		fmt.Fprintln(w, "written to", r.Output)
	}
	return nil
}

// Print writes the ranking as text.
func (c *Comparison) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d classes; %s\n", c.File, c.K, c.Split)
	lines := [][]string{{"", "method", "nll", "- best [95 %]", "- identity [95 %]", "ece [95 %]", "if calibrated",
		"accuracy", "fit"}}
	for _, r := range c.Ranking {
		lines = append(lines, r.cells())
	}
	if err := texttable.Print(w, lines, 2); err != nil {
		return err
	}
	c.printNotes(w)
	return nil
}

// cells are the line of a method.
func (r *Ranked) cells() []string {
	if r.Metrics == nil {
		state := "failed"
		if r.ErrorMessage == InterruptedMessage {
			state = InterruptedMessage
		}
		return []string{"-", r.Method, state}
	}
	m := r.Metrics
	best, identity := texttable.Difference(*r.ToBest), texttable.Difference(*r.ToIdentity)
	if r.Rank == 1 {
		best = ""
	}
	if r.Method == (calibrator.Identity{}).Method() {
		identity = ""
	}
	return []string{
		fmt.Sprint(r.Rank), r.Method, texttable.NLL(m.NLL), best, identity,
		texttable.Short(m.ECE) + " " + texttable.Interval(m.ECELo, m.ECEHi),
		texttable.Short(m.ECENull), texttable.Short(m.Accuracy), texttable.Seconds(r.Seconds),
	}
}

// printNotes are what the table does not say: failures, warnings, the first place.
func (c *Comparison) printNotes(w io.Writer) {
	shared := c.sharedWarnings()
	for _, warning := range shared {
		fmt.Fprintln(w, "warning:", warning)
	}
	for _, r := range c.Ranking {
		if r.ErrorMessage != "" && r.ErrorMessage != InterruptedMessage {
			fmt.Fprintf(w, "%s failed: %s\n", r.Method, r.ErrorMessage)
		}
		for _, warning := range r.Result.Warnings() {
			if !slices.Contains(shared, warning) {
				fmt.Fprintf(w, "%s: warning: %s\n", r.Method, warning)
			}
		}
	}
	c.printBest(w)
	if c.Chosen != nil && c.Output != "" && c.Output != "-" {
		how := "as scored"
		if c.Refit {
			how = "fitted on all rows"
		}
		fmt.Fprintf(w, "%s, %s, written to %s\n", c.Chosen.Describe(), how, c.Output)
	}
}

// printBest says which method is the first, and how sure that is.
func (c *Comparison) printBest(w io.Writer) {
	even := 0
	for _, r := range c.Ranking[1:] {
		if r.Metrics != nil && !(r.ToBest.Lo > 0) {
			even++
		}
	}
	fmt.Fprintf(w, "best: %s", c.Best)
	if even > 0 {
		fmt.Fprintf(w, ", not distinguishable from %d other(s) on these rows", even)
	}
	if d := c.Ranking[0].ToIdentity; c.Best != (calibrator.Identity{}).Method() && !d.Below() {
		fmt.Fprint(w, "; not significantly better than the identity")
	}
	fmt.Fprintln(w)
}

// sharedWarnings are those that every fitted method has: they are about the rows.
func (c *Comparison) sharedWarnings() (shared []string) {
	first := true
	for _, r := range c.Ranking {
		if r.Metrics == nil {
			continue
		}
		own := r.Result.Warnings()
		if first {
			shared, first = own, false
			continue
		}
		shared = slices.DeleteFunc(shared, func(s string) bool { return !slices.Contains(own, s) })
	}
	return shared
}

// Lines are the scores as cells: name, before, after and, of the NLL, the difference. rows says which rows they are of.
func (s *HeadScores) Lines(rows string) [][]string {
	value := func(f func(metric.Report) string) []string {
		before := "-"
		if s.Before != nil {
			before = f(*s.Before)
		}
		return []string{before, f(s.After)}
	}
	line := func(name string, f func(metric.Report) string) []string { return append([]string{name}, value(f)...) }
	nll := line("nll, "+rows, func(r metric.Report) string { return texttable.NLL(r.NLL) })
	if s.Difference != nil {
		nll = append(nll, texttable.Difference(*s.Difference))
	}
	return [][]string{nll,
		line("accuracy", func(r metric.Report) string { return texttable.Short(r.Accuracy) }),
		line("ece", func(r metric.Report) string { return texttable.Short(r.ECE) }),
		line("  95 % interval", func(r metric.Report) string { return texttable.Interval(r.ECELo, r.ECEHi) }),
		line("  if calibrated", func(r metric.Report) string { return texttable.Short(r.ECENull) }),
		line("aurc", func(r metric.Report) string { return texttable.Short(r.AURC) }),
	}
}
