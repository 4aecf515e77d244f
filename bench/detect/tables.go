package main

import (
	"fmt"
	"math"
	"strings"
)

// column is a test at a level.
type column struct {
	name  string
	level float64
}

func (c column) String() string { return fmt.Sprintf("%s, %s", c.name, short(c.level)) }

// panesSeen is how many panes a run of rows has for the test.
func (c column) panesSeen(rows int) float64 {
	name := c.name
	if parts, ok := joint[name]; ok {
		name = parts[0].name // which begins at the first row
	}
	for _, t := range tests {
		if t.name == name {
			return float64((rows - t.learn) / t.pane)
		}
	}
	panic("detection bench: no test " + name)
}

// bound is the share of runs of so many rows that may ever alarm.
func (c column) bound(rows int) float64 { return min(1, c.panesSeen(rows)/c.level) }

var calmColumns = []column{{"alarm", 1e3}, {"alarm", 1e4}, {"alarm", 1e5}, {"alarm", 3.15e6}, {"bins .02", 1e3},
	{"bins .02", 1e4}, {"bins .02", 1e5},
	{"change", 1e4}, {"change, panes of 20", 1e4}, {"accuracy", 1e4}, {"alarm + accuracy", 1e4}, {"alarm + accuracy" +
		shortPanes, 1e4}, {"alarm + accuracy" + shortPanes, 3.15e6}}

// moves says that a stream leaves the null of the change mode, although it keeps that of calibration.
func moves(name string) bool { return strings.HasPrefix(name, turns) }

// falseAlarms is the share of runs that ever alarm on streams that keep the tolerance, with the guarantee beside it.
func falseAlarms(b *strings.Builder, ours []result) {
	head := []string{"stream", "runs"}
	for _, c := range calmColumns {
		head = append(head, c.String())
	}
	head = append(head, "panes to an alarm at 1/α = 1e3")
	var rows [][]string
	for _, r := range ours {
		if !isCalm(r.Group) {
			continue
		}
		first := r.at("alarm", 1e3)
		row := []string{r.Name, fmt.Sprint(len(first))}
		for _, c := range calmColumns {
			text := percent(summarise(r.at(c.name, c.level), 0).crossed)
			if strings.HasPrefix(c.name, "change") && moves(r.Name) {
				text = "(" + text + ")"
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, runLength(first, r.Rows)))
	}
	bound := []string{"**guarantee**", ""}
	for _, c := range calmColumns {
		bound = append(bound, fmt.Sprintf("≤ %.3g %%", 100*c.bound(100_000)))
	}
	rows = append(rows, append(bound, "≥ 1,000"))
	table(b, "**False alarms**: share of runs of 100,000 rows that ever alarm, by 1/α; panes of 100 rows unless "+
		"named, all within ε = .02. In brackets: the stream leaves the null of the change mode, so that these are no "+
		"false alarms.", head, rows)
}

// runLength estimates the average run length: panes watched for each first alarm.
func runLength(first []int, rows int) string {
	var panes float64
	alarms := 0
	for _, at := range first {
		if at >= 0 {
			alarms++
			panes += float64(at) / 100
		} else {
			panes += float64(rows) / 100
		}
	}
	if alarms == 0 {
		return fmt.Sprintf("none in %.3g", panes)
	}
	return fmt.Sprintf("%.0f", panes/float64(alarms))
}

func short(level float64) string { return strings.Replace(fmt.Sprintf("%.3g", level), "e+0", "e", 1) }

// delayTable is the median number of rows from the change to the alarm, defaults of everybody.
func delayTable(b *strings.Builder, ours []result, peers []peer) {
	names, settings := detectorsOf(peers)
	columns := []column{{"alarm + accuracy", 3.15e6}, {"alarm", 3.15e6}, {"alarm", 1e5}, {"headline", 1e5},
		{"bins .02", 1e5}, {"change", 1e4}, {"change, panes of 20", 1e4}, {"accuracy", 1e4}}
	head := []string{"change"}
	for _, c := range columns {
		head = append(head, c.String())
	}
	for i, n := range names {
		head = append(head, fmt.Sprintf("%s, %s", n, settings[i]))
	}
	var rows [][]string
	for _, r := range ours {
		if r.Group != groupDelay {
			continue
		}
		row := []string{r.Name}
		for _, c := range columns {
			row = append(row, summarise(r.at(c.name, c.level), r.Change).rows())
		}
		for i, n := range names {
			row = append(row, find(peers, n, settings[i], r.Name).rows(r.Change))
		}
		rows = append(rows, row)
	}
	table(b, fmt.Sprintf("**Delay**: median rows from the change at row 10,000 to the first alarm after it, defaults "+
		"of everybody; \"early\" is the share of runs with an alarm before it. River: %s of "+
		"each.", peerRuns(peers, groupDelay)), head, rows)
}

// peerRuns is how many runs peers have of the streams of a group.
func peerRuns(peers []peer, group string) string {
	least, most, slow := math.MaxInt, 0, math.MaxInt
	for _, p := range peers {
		switch {
		case p.Group != group:
		case strings.HasPrefix(p.Detector, slowPeer):
			slow = min(slow, len(p.First))
		default:
			least, most = min(least, len(p.First)), max(most, len(p.First))
		}
	}
	if most == 0 {
		return "no runs"
	}
	text := span(least, most) + " runs"
	if slow < math.MaxInt {
		text += fmt.Sprintf(" (%s %d)", slowPeer, slow)
	}
	return text
}

const slowPeer = "KSWIN"

// stableTable is the number of labels until a model that is wrong from the start is found.
func stableTable(b *strings.Builder, ours []result, peers []peer, s *scores) {
	names, settings := detectorsOf(peers)
	head := append([]string{"model", "oracle", "headline, 1e5", "bins .02, 1e5", "alarm, default"}, names...)
	p := s.calibrated()
	var rows [][]string
	for _, r := range ours {
		if r.Group != groupStable {
			continue
		}
		var bias float64
		if _, err := fmt.Sscanf(r.Name, "overconfident by %g", &bias); err != nil {
			panic("detection bench: stream " + r.Name)
		}
		row := []string{r.Name, fmt.Sprintf("%.0f", math.Log(1e5)/oracle(p, bias))}
		for _, c := range []column{{"headline", 1e5}, {"bins .02", 1e5}, {"alarm", 3.15e6}} {
			row = append(row, summarise(r.at(c.name, c.level), 0).rows())
		}
		for i, n := range names {
			text := ""
			if q := find(peers, n, settings[i], r.Name); len(q.First) > 0 {
				text = percent(q.summaryAfter(0).crossed) + " of runs"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	title := fmt.Sprintf("**Stably wrong** from the first row: median labels to the alarm. The oracle knows the "+
		"error, and bets on it against the boundary of the tolerance: log 10⁵ / mean KL. River's detectors (%s) see "+
		"no change, for there is none: what they have are their false alarms.", peerRuns(peers, groupStable))
	table(b, title, head, rows)
}

// oracle returns the growth a row of the likelihood ratio of the true rate against the boundary c - ε.
func oracle(p pool, bias float64) float64 {
	var sum float64
	for _, c := range p.c {
		truth, edge := max(0, c-bias), max(1e-9, c-tolerance)
		sum += kl(truth, min(edge, 1-1e-9))
	}
	return sum / float64(len(p.c))
}

func kl(p, q float64) float64 {
	var sum float64
	if p > 0 {
		sum += p * math.Log(p/q)
	}
	if p < 1 {
		sum += (1 - p) * math.Log((1-p)/(1-q))
	}
	return sum
}
