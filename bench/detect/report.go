package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/section"
)

// summary is a detector on a stream at one setting.
type summary struct {
	crossed float64 // share of runs with an alarm after the change (or ever, where there is none)
	early   float64 // share with one before the change
	median  int     // rows from the change to the alarm; -1 where most runs have none
}

// summarise looks at first alarms. Runs with one before the change say nothing of delay where that ended the run: they
// count as runs without an alarm after it.
func summarise(first []int, change int) summary {
	var s summary
	const never = math.MaxInt
	delays := make([]int, 0, len(first))
	for _, at := range first {
		switch {
		case at < 0:
			delays = append(delays, never)
		case at <= change:
			s.early++
			delays = append(delays, never)
		default:
			s.crossed++
			delays = append(delays, at-change)
		}
	}
	n := float64(len(first))
	s.crossed, s.early, s.median = s.crossed/n, s.early/n, -1
	slices.Sort(delays)
	if len(delays) > 0 && delays[(len(delays)-1)/2] != never {
		s.median = delays[(len(delays)-1)/2]
	}
	return s
}

// jointly returns the first alarm of two tests.
func jointly(a, b []int) []int {
	out := make([]int, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i]
		if a[i] < 0 || b[i] >= 0 && b[i] < a[i] {
			out[i] = b[i]
		}
	}
	return out
}

// at returns the first alarms of a test, or of those that share an α, at 1/α = level.
func (r *result) at(name string, level float64) []int {
	if parts, ok := joint[name]; ok {
		first := r.at(parts[0].name, level*parts[0].of)
		for _, p := range parts[1:] {
			first = jointly(first, r.at(p.name, level*p.of))
		}
		return first
	}
	k := slices.IndexFunc(tests, func(t test) bool { return t.name == name })
	return r.FirstCrossings[k][slices.Index(levels, level)]
}

// report prints the tables of what has been measured so far, and puts them into the page if one is named.
func report(o options) error {
	s, streams, err := allStreams(o)
	if err != nil {
		return err
	}
	ours, err := results(o, streams)
	if err != nil {
		return err
	}
	var peers []peer
	if err := readJSON(filepath.Join(o.out, "peers.json"), &peers); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	code, err := codeDigest(o.out)
	if err != nil {
		return err
	}
	check, err := readRiver(o.out)
	if err != nil {
		return err
	}
	peers = append(peers, check.Peers...)
	estimates, err := estimateRows(s, o.out)
	if err != nil {
		return err
	}
	spots := s.spots()
	var b strings.Builder
	provenance(&b, code, ours, check)
	barTable(&b, ours, peers, spots, estimates)
	falseAlarms(&b, ours)
	peerFalseAlarms(&b, peers)
	delayTable(&b, ours, peers)
	whereTable(&b, ours, peers, spots)
	equalTable(&b, ours, peers)
	stableTable(&b, ours, peers, s)
	realTable(&b, ours, peers, streams)
	estimateTable(&b, estimates)
	fmt.Print(b.String())
	if o.docs != "" {
		return section.Replace(o.docs, "detection", b.String())
	}
	return nil
}

// provenance says how much was measured, and of which commit.
func provenance(b *strings.Builder, code string, ours []result, check river) {
	fewest, most, rows := math.MaxInt, 0, 0.
	var commits []string
	for _, r := range ours {
		if r.Group == groupReal {
			continue
		}
		n := r.runs()
		fewest, most = min(fewest, n), max(most, n)
		rows += float64(n) * float64(r.Rows)
		for _, c := range r.Commits {
			if !slices.Contains(commits, c) {
				commits = append(commits, c)
			}
		}
	}
	fmt.Fprintf(b, "Measured at %s (the same sources, digest %s): %s runs of every stream, %.2g rows in all",
		strings.Join(commits, ", "), code, span(fewest, most), rows)
	b.WriteString(".")
	if check.Compared > 0 {
		fmt.Fprintf(b, " River's detectors have the first of the same runs; they are rewritten in Go, and %d of %d "+
			"first alarms are those of river %s itself on the same rows.", check.Equal, check.Compared, check.River)
	}
	b.WriteString("\n\n")
}

func span(a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d to %d", a, b)
}

// runs is how many runs were measured.
func (r *result) runs() int { return len(r.FirstCrossings[0][0]) }

// named returns the result of that name, nil without one.
func named(ours []result, name string) *result {
	for i := range ours {
		if ours[i].Name == name {
			return &ours[i]
		}
	}
	return nil
}

// table writes a table of Markdown.
func table(b *strings.Builder, title string, head []string, rows [][]string) {
	fmt.Fprintf(b, "%s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, r := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(r, " | "))
	}
	b.WriteString("\n")
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// rows prints a median delay, with the share of runs that count for it where it is not all of them.
func (s summary) rows() string {
	text := "never"
	if s.median >= 0 {
		text = fmt.Sprint(s.median)
	} else if s.crossed > 0 {
		text = fmt.Sprintf("%.0f %% found", 100*s.crossed)
	}
	if s.early > 0 {
		text += fmt.Sprintf(" (early %.0f %%)", 100*s.early)
	}
	return text
}

func isCalm(group string) bool { return group == groupCalm || group == groupLate }
