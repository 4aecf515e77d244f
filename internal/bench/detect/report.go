package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// summary is a detector on a stream at one setting.
type summary struct {
	crossed float64 // share of runs with an alarm after the change (or ever, where there is none)
	early   float64 // share with one before the change
	median  int     // rows from the change to the alarm; -1 where most runs have none
}

// summarise looks at first alarms. Runs with one before the change say nothing of delay where that ended the run: they count as
// runs without an alarm after it.
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

// peer is what peers.json has of a detector, a setting and a stream.
type peer struct {
	Stream, Group, Detector, Setting string
	Default                          bool
	First                            []int
	Early                            int
}

// jointly returns the first alarm of two tests that share an α: each at twice the level.
func jointly(a, b []int) []int {
	out := make([]int, len(a))
	for i := range a {
		out[i] = a[i]
		if a[i] < 0 || b[i] >= 0 && b[i] < a[i] {
			out[i] = b[i]
		}
	}
	return out
}

// at returns the first alarms of a test at 1/α = level; test "alarm" is headline and diagnosis together.
func (r *result) at(name string, level float64) []int {
	if name == "alarm" {
		return jointly(r.at("headline", 2*level), r.at("diagnosis", 2*level))
	}
	k := slices.IndexFunc(tests, func(t test) bool { return t.name == name })
	return r.FirstCrossings[k][slices.Index(levels, level)]
}

// report prints the tables, and writes them to docs/benchmarks.md where PLUMBLINE_DOCS is set.
func report(o options) error {
	var ours []result
	if err := readJSON(filepath.Join(o.out, "ours.json"), &ours); err != nil {
		return err
	}
	var peers []peer
	if err := readJSON(filepath.Join(o.out, "peers.json"), &peers); err != nil && !os.IsNotExist(err) {
		return err
	}
	s, err := readScores(o.data)
	if err != nil {
		return err
	}
	var b strings.Builder
	falseAlarms(&b, ours, peers)
	delayTable(&b, ours, peers)
	equalLevels(&b, ours, peers)
	stableTable(&b, ours, peers, s)
	if err := realTable(&b, ours, peers, o.out); err != nil {
		return err
	}
	if err := estimateTable(&b, s, o.out); err != nil {
		return err
	}
	fmt.Print(b.String())
	if os.Getenv("PLUMBLINE_DOCS") != "" {
		return writeSection("docs/benchmarks.md", "detection", b.String())
	}
	return nil
}

// writeSection puts text between the markers of that name.
func writeSection(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no section %q", path, name)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o600)
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

// late rewrites the alarms before a change of a peer, which goes on after them.
func (p *peer) summary(change int) summary {
	s := summarise(p.First, change)
	s.early = float64(p.Early) / float64(len(p.First))
	return s
}

func isCalm(group string) bool { return group == groupCalm || group == groupLate }
