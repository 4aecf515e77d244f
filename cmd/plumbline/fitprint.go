package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/internal/offline"
)

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// textTable aligns its columns to the right, the first to the left.
type textTable struct{ w *tabwriter.Writer }

func newTable(w io.Writer) textTable { return textTable{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// alignRight pads the cells of every column but the first ones to one width: tabwriter aligns all columns one way.
func alignRight(lines [][]string, left int) {
	for j := left; ; j++ {
		width := 0
		for _, l := range lines {
			if j < len(l) {
				width = max(width, len([]rune(l[j])))
			}
		}
		if width == 0 {
			return
		}
		for _, l := range lines {
			if j < len(l) {
				l[j] = strings.Repeat(" ", width-len([]rune(l[j]))) + l[j]
			}
		}
	}
}

func (t textTable) print(lines [][]string, left int) error {
	alignRight(lines, left)
	for _, l := range lines {
		fmt.Fprintln(t.w, strings.TrimRight(strings.Join(l, "\t"), "\t "))
	}
	return t.w.Flush()
}

func printFit(w io.Writer, r *offline.FitResult, asJSON bool) error {
	if asJSON {
		return encodeJSON(w, r)
	}
	fmt.Fprintf(w, "%s: %s\n", r.Method, r.Description)
	fmt.Fprintf(w, "%d rows, K = %d with %d classes among the labels; %s\n", r.Fit.Rows, r.K, r.Fit.Classes, formatSeconds(r.Seconds))
	lines := [][]string{{"", "before", "after", "difference"},
		{"nll of the fitted rows", formatNLL(r.Fit.NLLBefore), formatNLL(r.Fit.NLLAfter), signed(r.Fit.NLLAfter - r.Fit.NLLBefore)}}
	if h := r.Holdout; h != nil {
		fmt.Fprintln(w, r.Split)
		b, a := h.Before, h.After
		lines = append(lines,
			[]string{"nll, held out", formatNLL(b.NLL), formatNLL(a.NLL), formatDifference(h.Difference)},
			[]string{"accuracy", formatShort(b.Accuracy), formatShort(a.Accuracy)},
			[]string{"ece", formatShort(b.ECE), formatShort(a.ECE)},
			[]string{"  95 % interval", formatInterval(b.ECELo, b.ECEHi), formatInterval(a.ECELo, a.ECEHi)},
			[]string{"  if calibrated", formatShort(b.ECENull), formatShort(a.ECENull)},
			[]string{"brier", formatShort(b.Brier), formatShort(a.Brier)},
		)
	}
	if err := newTable(w).print(lines, 1); err != nil {
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

func printComparison(w io.Writer, c *offline.Comparison, asJSON bool) error {
	if asJSON {
		return encodeJSON(w, c)
	}
	fmt.Fprintf(w, "%s: %d classes; %s\n", c.File, c.K, c.Split)
	lines := [][]string{{"", "method", "nll", "- best [95 %]", "- identity [95 %]", "ece [95 %]", "if calibrated", "accuracy", "fit"}}
	for _, r := range c.Ranking {
		if r.Metrics == nil {
			state := "failed"
			if r.ErrorMessage == offline.InterruptedMessage {
				state = offline.InterruptedMessage
			}
			lines = append(lines, []string{"-", r.Method, state})
			continue
		}
		m := r.Metrics
		best, identity := formatDifference(*r.ToBest), formatDifference(*r.ToIdentity)
		if r.Rank == 1 {
			best = ""
		}
		if r.Method == (calibrator.Identity{}).Method() {
			identity = ""
		}
		lines = append(lines, []string{fmt.Sprint(r.Rank), r.Method, formatNLL(m.NLL), best, identity,
			formatShort(m.ECE) + " " + formatInterval(m.ECELo, m.ECEHi), formatShort(m.ECENull), formatShort(m.Accuracy), formatSeconds(r.Seconds)})
	}
	if err := newTable(w).print(lines, 2); err != nil {
		return err
	}
	printNotes(w, c)
	return nil
}

// printNotes are what the table does not say: failures, warnings, how sure the first place is.
func printNotes(w io.Writer, c *offline.Comparison) {
	shared := sharedWarnings(c)
	for _, warning := range shared {
		fmt.Fprintln(w, "warning:", warning)
	}
	for _, r := range c.Ranking {
		if r.ErrorMessage != "" && r.ErrorMessage != offline.InterruptedMessage {
			fmt.Fprintf(w, "%s failed: %s\n", r.Method, r.ErrorMessage)
		}
		for _, warning := range r.Result.Warnings() {
			if !slices.Contains(shared, warning) {
				fmt.Fprintf(w, "%s: warning: %s\n", r.Method, warning)
			}
		}
	}
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
	if c.Chosen != nil && c.Output != "" && c.Output != "-" {
		fmt.Fprintf(w, "%s, %s, written to %s\n", c.Chosen.Describe(), map[bool]string{true: "fitted on all rows", false: "as scored"}[c.Refit], c.Output)
	}
}

// sharedWarnings are those that every fitted method has: they are about the rows.
func sharedWarnings(c *offline.Comparison) (shared []string) {
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

func formatNLL(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return decimals(v, 5)
}

// signed is decimals with a sign.
func signed(v float64) string {
	if math.Abs(v) >= 1e7 {
		return fmt.Sprintf("%+.5e", v)
	}
	return fmt.Sprintf("%+.5f", v)
}

func formatDifference(d compare.Difference) string {
	switch {
	case math.IsNaN(d.Mean):
		return "-"
	case math.IsNaN(d.Lo):
		return signed(d.Mean)
	}
	return fmt.Sprintf("%s [%s, %s]", signed(d.Mean), signed(d.Lo), signed(d.Hi))
}

func formatInterval(lo, hi float64) string {
	if math.IsNaN(lo) || math.IsNaN(hi) {
		return "-"
	}
	return fmt.Sprintf("[%.4f, %.4f]", lo, hi)
}

func formatSeconds(s float64) string {
	switch {
	case s < 0.1:
		return fmt.Sprintf("%.1f ms", 1000*s)
	case s < 100:
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}
