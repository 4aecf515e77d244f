package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// bars are the least shares and ratios of processor time that the path is to reach.
type bars struct{ ofBare, overPython float64 }

func barsOf(c cell) bars {
	b := bars{overPython: 12}
	switch {
	case c.Inline:
		b.overPython = 20
		if c.K >= 100 {
			b.ofBare = .6
		}
	case c.K >= 100:
		b.ofBare = .4
	case c.K == 10:
		b.ofBare = .25
	}
	return b
}

// render makes the table; cells of the whole grid that were not run are named below it.
func render(results []result, which []string) string {
	var t strings.Builder
	t.WriteString("Processor time a row in nanoseconds, start-up apart; rows a second of wall time in brackets.\n\n" +
		"| K | labels | keys | message rows | rows | MB |")
	for _, c := range which {
		fmt.Fprintf(&t, " %s |", c)
	}
	t.WriteString(" of kafka-go | bar | over python | bar |\n|---|---|---|---|---|---|" +
		strings.Repeat("---|", len(which)+4) + "\n")
	for _, r := range results {
		labels := "joined"
		if r.Inline {
			labels = "inline"
		}
		if r.JSON {
			labels += ", JSON"
		}
		if r.Sent > 0 {
			labels += fmt.Sprintf(" in batches of %d", r.Sent)
		}
		fmt.Fprintf(&t, "| %d | %s | %d | %d | %d | %.0f |", r.K, labels, r.Keys, r.Batch, r.Rows, float64(r.bytes)/1e6)
		for _, c := range which {
			u := r.took[c]
			fmt.Fprintf(&t, " %.0f", perRow(u.processor, r.Rows))
			if u.wall > time.Second/10 { // else it is lost in what starting takes
				fmt.Fprintf(&t, " (%.0f k)", float64(r.Rows)/1e3/u.wall.Seconds())
			}
			t.WriteString(" |")
		}
		b := barsOf(r.cell)
		fmt.Fprintf(&t, " %s | %s | %s | %.0f × |\n", share(r.took, "kafka-go"), percent(b.ofBare),
			ratio(r.took, "python"), b.overPython)
	}
	return t.String() + missing(results)
}

func perRow(d time.Duration, rows int64) float64 { return float64(d.Nanoseconds()) / float64(rows) }

func share(took map[string]used, client string) string {
	u, ok := took[client]
	if !ok || took["plumbline"].processor <= 0 {
		return "–"
	}
	return percent(u.processor.Seconds() / took["plumbline"].processor.Seconds())
}

func percent(x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func ratio(took map[string]used, client string) string {
	u, ok := took[client]
	if !ok || took["plumbline"].processor <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f ×", u.processor.Seconds()/took["plumbline"].processor.Seconds())
}

// missing names the cells that were not run.
func missing(results []result) string {
	run := make([]cell, 0, len(results))
	for _, r := range results {
		if r.JSON { // a set of its own
			return ""
		}
		run = append(run, r.cell)
	}
	var not []string
	for _, c := range fullCells() {
		if !slices.Contains(run, c) {
			not = append(not, strings.TrimSuffix(c.name(), fmt.Sprintf("-rows%d", c.Rows)))
		}
	}
	if len(not) == 0 {
		return ""
	}
	return fmt.Sprintf("\nNot run: %d of the %d cells of the whole grid: %s.\n", len(not), len(fullCells()),
		strings.Join(not, ", "))
}
