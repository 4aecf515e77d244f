package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// made returns a result with the same first alarms of every test at every level; short of runs where they are none.
func made(group, name string, change int, first ...int) result {
	r := result{Group: group, Name: name, Rows: 100_000, Change: change, Bounded: group == groupCalm}
	for range tests {
		by := make([][]int, len(levels))
		for l := range by {
			by[l] = slices.Clone(first)
		}
		r.FirstCrossings = append(r.FirstCrossings, by)
	}
	return r
}

func never100(alarms int) []int {
	out := make([]int, 100)
	for i := range out {
		out[i] = -1
		if i < alarms {
			out[i] = 50
		}
	}
	return out
}

// TestCalmSetting: the most sensitive of those that alarm in at most 1 % of the runs of both streams.
func TestCalmSetting(t *testing.T) {
	var peers []peer
	for order, alarms := range [][2]int{{90, 0}, {0, 2}, {1, 1}, {0, 0}} {
		setting := string(rune('a' + order))
		peers = append(peers, peer{Stream: turns, Group: groupCalm, Detector: "D", Setting: setting, Order: order, First: never100(alarms[0])},
			peer{Stream: calibratedName, Group: groupCalm, Detector: "D", Setting: setting, Order: order, First: never100(alarms[1])})
	}
	if got := calmSetting(peers, "D"); got != "c" {
		t.Errorf("setting %q, want c", got)
	}
	slices.Reverse(peers)
	if got := calmSetting(peers, "D"); got != "c" {
		t.Errorf("in another order: setting %q, want c", got)
	}
	if got := calmSetting(peers, "E"); got != "" {
		t.Errorf("a detector that has not run: %q", got)
	}
	if got := calmSetting(peers[len(peers)-4:], "D"); got != "" {
		t.Errorf("none is calm: %q", got)
	}
}

// TestOwnLevel: the least level with at most 1 % on the worst of all streams within the tolerance, where one of its tests has half of α.
func TestOwnLevel(t *testing.T) {
	a, b := made(groupCalm, "a", 0, never100(0)...), made(groupCalm, "b", 0, never100(0)...)
	late := made(groupLate, "late", 0, never100(100)...) // chosen on streams in order alone, as for the others
	for _, k := range []int{slices.IndexFunc(tests, func(x test) bool { return x.name == joint[ownTests[0]][2].name })} {
		for l, level := range levels {
			if level < 2e5 {
				b.FirstCrossings[k][l] = never100(2)
			}
		}
	}
	if got := ownLevel([]result{a, b, late}, ownTests[0]); got != 1e5 {
		t.Errorf("level %v, want 1e5: twice that is calm", got)
	}
}

// TestEqualScore: first or within 1.2× counts; what nobody finds and models that are wrong from the start do not.
func TestEqualScore(t *testing.T) {
	peers := []peer{{Stream: turns, Detector: "D", Setting: "s", First: never100(0)}, {Stream: calibratedName, Detector: "D", Setting: "s", First: never100(0)}}
	ours := []result{made(groupCalm, "calm", 0, never100(0)...)}
	for _, c := range []struct {
		name         string
		group        string
		mine, theirs int
	}{
		{"first", groupDelay, 1100, 1200}, {"within", groupDelay, 1120, 1100}, {"slow", groupDelay, 1121, 1100}, {"mine alone", groupDelay, 1100, -1},
		{"theirs alone", groupDelay, -1, 1100}, {"nobody", groupDelay, -1, -1}, {"stable", groupStable, 1100, -1}, {"not run", groupDelay, 1100, 0},
	} {
		ours = append(ours, made(c.group, c.name, 1000, c.mine))
		p := peer{Stream: c.name, Group: c.group, Detector: "D", Setting: "s", First: []int{c.theirs}}
		if c.theirs == 0 {
			p.First = nil
		}
		peers = append(peers, p)
	}
	for own := range ownTests {
		if good, total := equalScore(ours, peers, own); good != 4 || total != 6 {
			t.Errorf("%s: %d of %d, want 4 of 6", ownTests[own], good, total)
		}
	}
}

// TestBars: every bar says no where it is missed.
func TestBars(t *testing.T) {
	calm := made(groupCalm, calibratedName, 0, never100(0)...)
	verdicts := func(ours []result, peers []peer) map[string]string {
		var b strings.Builder
		barTable(&b, ours, peers, nil, []estimateRow{{truth: .5, confidence: .6, cbpe: .7}, {truth: .5, confidence: .6, cbpe: math.NaN()}})
		out := map[string]string{}
		for _, l := range strings.Split(b.String(), "\n") {
			if cells := strings.Split(l, " | "); len(cells) == 3 {
				out[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(cells[2], " |")
			}
		}
		return out
	}
	guarantee := groupCalm + ": within the guarantee everywhere"
	contrast := "contrast_s3: at most 700 rows (bins .02, 1e5)"
	change := "change mode (panes of 20, 1e4) within 1.5× of ADWIN (δ = .002) on corruptions"
	adwin := []peer{{Stream: "contrast_s3", Group: groupDelay, Detector: "ADWIN (a − c)", Setting: "delta = 0.002", First: []int{10_400, 10_400, 10_400}}}
	good := verdicts([]result{calm, made(groupDelay, "contrast_s3", 10_000, 10_600, 10_600, 10_600)}, adwin)
	bad := verdicts([]result{made(groupCalm, calibratedName, 0, never100(60)...), made(groupDelay, "contrast_s3", 10_000, 10_710, 10_710, -1)}, adwin)
	for _, bar := range []string{guarantee, contrast, change} {
		if good[bar] != "yes" || bad[bar] != "**no**" {
			t.Errorf("%s: %q where it is met, %q where not", bar, good[bar], bad[bar])
		}
	}
	if !withinBound(.11, .1, 1000) || withinBound(.14, .1, 1000) || !withinBound(1, 1, 10) {
		t.Error("a share may be above its bound by three standard errors, no more")
	}
}
