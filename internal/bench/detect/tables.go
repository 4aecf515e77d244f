package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// falseAlarms is the share of runs that ever alarm on streams that keep the tolerance, with the guarantee beside it.
func falseAlarms(b *strings.Builder, ours []result, peers []peer) {
	columns := []struct {
		name  string
		level float64
	}{{"alarm", 1e3}, {"alarm", 1e4}, {"alarm", 1e5}, {"alarm", 3.15e6}, {"bins .02", 1e3}, {"bins .02", 1e4}, {"bins .02", 1e5}, {"change", 1e4}}
	head := []string{"stream", "runs"}
	for _, c := range columns {
		head = append(head, fmt.Sprintf("%s, %s", c.name, short(c.level)))
	}
	head = append(head, "panes to an alarm at 1/α = 1e3")
	var rows [][]string
	for _, r := range ours {
		if !isCalm(r.Group) {
			continue
		}
		first := r.at("alarm", 1e3)
		row := []string{r.Name, fmt.Sprint(len(first))}
		for _, c := range columns {
			row = append(row, percent(summarise(r.at(c.name, c.level), 0).crossed))
		}
		rows = append(rows, append(row, runLength(first, r.Rows)))
	}
	bound := []string{"**guarantee**, 1,000 panes", ""}
	for _, c := range columns {
		bound = append(bound, fmt.Sprintf("≤ %.2g %%", 100*min(1, 1000/c.level)))
	}
	rows = append(rows, append(bound, "≥ 1,000"))
	table(b, "**False alarms**: share of runs of 100,000 rows that ever alarm, by 1/α; panes of 100 rows, all within ε = .02.", head, rows)
	if len(peers) == 0 {
		return
	}
	peerFalseAlarms(b, peers)
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

func peerFalseAlarms(b *strings.Builder, peers []peer) {
	var rows [][]string
	for _, p := range peers {
		if p.Group != groupCalm || p.Stream != turns {
			continue
		}
		calm := find(peers, p.Detector, p.Setting, "calibrated")
		mark := ""
		if p.Default {
			mark = " (default)"
		}
		rows = append(rows, []string{p.Detector, p.Setting + mark, fmt.Sprint(len(p.First)), percent(summarise(calm.First, 0).crossed), percent(summarise(p.First, 0).crossed)})
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	table(b, "River's detectors on the first of the same runs, each row a label:", []string{"detector", "setting", "runs", "calibrated", "±ε in turns"}, rows)
}

const turns = "±ε in turns"

// find returns the entry of peers, or one without runs.
func find(peers []peer, detector, setting, stream string) *peer {
	for i := range peers {
		if p := &peers[i]; p.Detector == detector && p.Setting == setting && p.Stream == stream {
			return p
		}
	}
	return &peer{}
}

// detectorsOf lists the peers' names with their default settings.
func detectorsOf(peers []peer) (names, settings []string) {
	for _, p := range peers {
		if p.Default && !slices.Contains(names, p.Detector) {
			names, settings = append(names, p.Detector), append(settings, p.Setting)
		}
	}
	return names, settings
}

// delayTable is the median number of rows from the change to the alarm, defaults of everybody.
func delayTable(b *strings.Builder, ours []result, peers []peer) {
	names, settings := detectorsOf(peers)
	head := []string{"change", "alarm, default", "alarm, 1e5", "headline, 1e5", "bins .02, 1e5", "change mode, 1e4", "change mode, 1e4, panes of 20"}
	for i, n := range names {
		head = append(head, fmt.Sprintf("%s, %s", n, settings[i]))
	}
	var rows [][]string
	for _, r := range ours {
		if r.Group != groupDelay {
			continue
		}
		row := []string{r.Name}
		for _, c := range []struct {
			name  string
			level float64
		}{{"alarm", 3.15e6}, {"alarm", 1e5}, {"headline", 1e5}, {"bins .02", 1e5}, {"change", 1e4}, {"change, panes of 20", 1e4}} {
			row = append(row, summarise(r.at(c.name, c.level), r.Change).rows())
		}
		for i, n := range names {
			row = append(row, find(peers, n, settings[i], r.Name).summary(r.Change).rows())
		}
		rows = append(rows, row)
	}
	table(b, "**Delay**: median rows from the change at row 10,000 to the first alarm after it; \"early\" is the share of runs with an alarm before it.", head, rows)
}

// calmest is the largest share of boundary runs with an alarm that a setting may have to be compared.
const calmest = .01

// equalLevels compares everybody at the most sensitive setting that alarms in at most 1 % of the boundary runs.
func equalLevels(b *strings.Builder, ours []result, peers []peer) {
	names, _ := detectorsOf(peers)
	if len(names) == 0 {
		return
	}
	const own = "bins .02, panes of 20"
	level := ownLevel(ours, own)
	head := []string{"change", fmt.Sprintf("plumbline (%s, 1/α = %s)", own, short(level))}
	var chosen []string
	for _, n := range names {
		chosen = append(chosen, quietest(ours, peers, n))
		text := n + ": no setting is calm enough"
		if s := chosen[len(chosen)-1]; s != "" {
			text = n + ", " + s
		}
		head = append(head, text)
	}
	good, total := 0, 0
	var rows [][]string
	for _, r := range ours {
		if r.Group != groupDelay && r.Group != groupStable {
			continue
		}
		mine := summarise(r.at(own, level), r.Change)
		row, best := []string{r.Name, mine.rows()}, math.MaxInt
		for i, n := range names {
			if chosen[i] == "" {
				row = append(row, "")
				continue
			}
			s := find(peers, n, chosen[i], r.Name).summary(r.Change)
			row = append(row, s.rows())
			if s.median >= 0 {
				best = min(best, s.median)
			}
		}
		if mine.median >= 0 || best < math.MaxInt {
			total++ // where nobody finds anything there is nothing to compare
		}
		if mine.median >= 0 && float64(mine.median) <= 1.2*float64(best) {
			good++
		}
		rows = append(rows, row)
	}
	title := fmt.Sprintf("**At equal false alarms**: everybody at the most sensitive setting of the grid that alarms in at most 1 %% of the runs of \"%s\". plumbline is first or within 1.2× of the best in %d of the %d that anybody finds. plumbline has %d runs of each, river at least %d (KSWIN fewer), and then 1 %% means none of them.",
		turns, good, total, len(ours[0].at(own, level)), fewestRuns(peers))
	table(b, title, head, rows)
}

// fewestRuns is the least number of runs of a setting, slow detectors aside.
func fewestRuns(peers []peer) int {
	n := math.MaxInt
	for _, p := range peers {
		if p.Group != groupReal && !strings.HasPrefix(p.Detector, "KSWIN") {
			n = min(n, len(p.First))
		}
	}
	return n
}

func ownLevel(ours []result, name string) float64 {
	for _, level := range levels {
		for _, r := range ours {
			if r.Name == turns && summarise(r.at(name, level), 0).crossed <= calmest {
				return level
			}
		}
	}
	return levels[len(levels)-1]
}

// quietest returns the setting with the least sum of delays of those that keep the level; never counts as delayLimit.
func quietest(ours []result, peers []peer, detector string) string {
	best, least := "", math.Inf(1)
	for _, p := range peers {
		if p.Detector != detector || p.Stream != turns || summarise(p.First, 0).crossed > calmest {
			continue
		}
		var sum float64
		for _, r := range ours {
			if r.Group != groupDelay {
				continue
			}
			if m := find(peers, detector, p.Setting, r.Name).summary(r.Change).median; m >= 0 {
				sum += math.Log(float64(m))
			} else {
				sum += math.Log(delayLimit)
			}
		}
		if sum < least {
			best, least = p.Setting, sum
		}
	}
	return best
}

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
		for _, c := range []struct {
			name  string
			level float64
		}{{"headline", 1e5}, {"bins .02", 1e5}, {"alarm", 3.15e6}} {
			row = append(row, summarise(r.at(c.name, c.level), 0).rows())
		}
		for i, n := range names {
			q := find(peers, n, settings[i], r.Name)
			text := percent(summarise(q.First, 0).crossed) + " of runs"
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	title := "**Stably wrong** from the first row: median labels to the alarm. The oracle knows the error, and bets on it against the boundary of the tolerance: log 10⁵ / mean KL."
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
