package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// ownTest is what is compared with others at equal false alarms: one alarm, for all streams.
const ownTest = "bins + accuracy"

// ownLevel returns the least level at which the test alarms in at most 1 % of the runs of every stream within the tolerance.
func ownLevel(ours []result) float64 {
	for _, level := range levels {
		if !slices.Contains(levels, 2*level) {
			continue
		}
		worst := 0.0
		for _, r := range ours {
			if r.Group == groupCalm {
				worst = max(worst, summarise(r.at(ownTest, level), 0).crossed)
			}
		}
		if worst <= calmest {
			return level
		}
	}
	return levels[len(levels)-1] / 2
}

// scenario is one row of the comparison.
type scenario struct {
	r      *result
	own    summary
	theirs []string
	best   int // of the others, rows; math.MaxInt where none finds it
}

// found is false where nobody finds anything: there is nothing to compare then.
func (s scenario) found() bool { return s.own.median >= 0 || s.best < math.MaxInt }

// good is first or within 1.2× of the best.
func (s scenario) good() bool {
	return s.own.median >= 0 && float64(s.own.median) <= 1.2*float64(s.best)
}

// scenarios compares everybody at the most sensitive setting that is calm.
func scenarios(ours []result, peers []peer) []scenario {
	names, _ := detectorsOf(peers)
	level := ownLevel(ours)
	var out []scenario
	for i := range ours {
		r := &ours[i]
		if isCalm(r.Group) {
			continue
		}
		s := scenario{r: r, own: summarise(r.at(ownTest, level), r.Change), best: math.MaxInt}
		for _, n := range names {
			q := &peer{}
			if setting := calmSetting(peers, n); setting != "" {
				q = find(peers, n, setting, r.Name)
			}
			s.theirs = append(s.theirs, q.rows(r.Change))
			if len(q.First) > 0 && q.summary(r.Change).median >= 0 {
				s.best = min(s.best, q.summary(r.Change).median)
			}
		}
		out = append(out, s)
	}
	return out
}

// equalScore counts the scenarios of a change (item 2 of the bars) that anybody finds, and those where plumbline is good.
func equalScore(ours []result, peers []peer) (good, total int) {
	for _, s := range scenarios(ours, peers) {
		if s.r.Group == groupStable || !s.found() {
			continue
		}
		total++
		if s.good() {
			good++
		}
	}
	return good, total
}

func equalTable(b *strings.Builder, ours []result, peers []peer) {
	names, _ := detectorsOf(peers)
	if len(names) == 0 {
		return
	}
	head := []string{"change", fmt.Sprintf("plumbline (%s, panes of 20, 1/α = %s)", ownTest, short(ownLevel(ours)))}
	for _, n := range names {
		text := n + ": no setting is calm"
		if s := calmSetting(peers, n); s != "" {
			text = n + ", " + s
		}
		head = append(head, text)
	}
	var rows [][]string
	for _, s := range scenarios(ours, peers) {
		mine := s.own.rows()
		if s.good() {
			mine = "**" + mine + "**"
		}
		rows = append(rows, append([]string{s.r.Name, mine}, s.theirs...))
	}
	good, total := equalScore(ours, peers)
	table(b, fmt.Sprintf("**At equal false alarms**: everybody at the most sensitive setting that alarms in at most 1 %% of the runs of every stream within the tolerance (river: of \"%s\" and \"%s\", %s). Median rows to the alarm; plumbline's are bold where they are the least or within 1.2× of it: %d of the %d changes that anybody finds (the models that are wrong from the start not counted). River: %s of each; a key of a slice has river's setting as it is, plumbline's α/20.",
		calibratedName, turns, peerRuns(peers, groupCalm), good, total, peerRuns(peers, groupDelay)), head, rows)
}
