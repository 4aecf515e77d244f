package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// ownTests are compared with others at equal false alarms: the stream's alarm as it is shipped, in short panes and in
// longer ones.
var ownTests = []string{"alarm + accuracy" + shortPanes, "alarm + accuracy"}

// ownLevel returns the least level at which the alarm fires in at most 1 % of the runs of every stream within the
// tolerance.
func ownLevel(ours []result, own string) float64 {
	for _, level := range levels {
		if !slices.Contains(levels, 2*level) || !slices.Contains(levels, 4*level) {
			continue
		}
		worst := 0.0
		for _, r := range ours {
			if r.Group == groupCalm {
				worst = max(worst, summarise(r.at(own, level), 0).crossed)
			}
		}
		if worst <= calmest {
			return level
		}
	}
	return levels[len(levels)-1] / 4
}

// scenario is one row of the comparison.
type scenario struct {
	r      *result
	own    []summary // of ownTests
	theirs []string
	best   int // of the others, rows; math.MaxInt where none finds it
}

// found is false where nobody finds anything: there is nothing to compare then.
func (s scenario) found() bool {
	return s.best < math.MaxInt || slices.ContainsFunc(s.own, func(o summary) bool { return o.median >= 0 })
}

// good is first or within 1.2× of the best of the others.
func (s scenario) good(own int) bool {
	return s.own[own].median >= 0 && float64(s.own[own].median) <= 1.2*float64(s.best)
}

// scenarios compares everybody at the most sensitive setting that is calm.
func scenarios(ours []result, peers []peer) []scenario {
	names, _ := detectorsOf(peers)
	var level []float64
	for _, own := range ownTests {
		level = append(level, ownLevel(ours, own))
	}
	var out []scenario
	for i := range ours {
		r := &ours[i]
		if isCalm(r.Group) || r.Group == groupWhere {
			continue
		}
		s := scenario{r: r, best: math.MaxInt}
		for k, own := range ownTests {
			s.own = append(s.own, summarise(r.at(own, level[k]), r.Change))
		}
		for _, n := range names {
			q := &peer{}
			if setting := calmSetting(peers, n); setting != "" {
				q = find(peers, n, setting, r.Name)
			}
			s.theirs = append(s.theirs, q.rows(r.Change))
			if len(q.First) > 0 && q.summaryAfter(r.Change).median >= 0 {
				s.best = min(s.best, q.summaryAfter(r.Change).median)
			}
		}
		out = append(out, s)
	}
	return out
}

// equalScore counts the scenarios of a change (item 2 of the bars) that anybody finds, and those where plumbline is
// good.
func equalScore(ours []result, peers []peer, own int) (good, total int) {
	for _, s := range scenarios(ours, peers) {
		if s.r.Group == groupStable || !s.found() {
			continue
		}
		total++
		if s.good(own) {
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
	head := []string{"change"}
	for _, own := range ownTests {
		head = append(head, fmt.Sprintf("%s, 1/α = %s", own, short(ownLevel(ours, own))))
	}
	for _, n := range names {
		text := n + ": no setting is calm"
		if s := calmSetting(peers, n); s != "" {
			text = n + ", " + s
		}
		head = append(head, text)
	}
	var rows [][]string
	for _, s := range scenarios(ours, peers) {
		row := []string{s.r.Name}
		for k, own := range s.own {
			mine := own.rows()
			if s.good(k) {
				mine = "**" + mine + "**"
			}
			row = append(row, mine)
		}
		rows = append(rows, append(row, s.theirs...))
	}
	var scores []string
	for k, own := range ownTests {
		good, total := equalScore(ours, peers, k)
		scores = append(scores, fmt.Sprintf("%d of %d by %s", good, total, own))
	}
	table(b, fmt.Sprintf("**At equal false alarms**: everybody at the most sensitive setting that alarms in at most "+
		"1 %% of the runs of every stream within the tolerance (river: of \"%s\" and \"%s\", %s). Median rows to the "+
		"alarm; plumbline's are bold where they are the least or within 1.2× of the best of the others: %s, of the "+
		"changes that anybody finds (the models that are wrong from the start not counted). River: %s of each; a key "+
		"of a slice has river's setting as it is, plumbline's α/20.",
		calibratedName, turns, peerRuns(peers, groupCalm), strings.Join(scores, ", "), peerRuns(peers,
			groupDelay)), head, rows)
}
