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
		peers = append(peers, peer{Stream: turns, Group: groupCalm, Detector: "D", Setting: setting, Order: order,
			First: never100(alarms[0])},
			peer{Stream: calibratedName, Group: groupCalm, Detector: "D", Setting: setting, Order: order,
				First: never100(alarms[1])})
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

// TestOwnLevel: the least level with at most 1 % on the worst of all streams within the tolerance, where one of its
// tests has half of α.
func TestOwnLevel(t *testing.T) {
	a, b := made(groupCalm, "a", 0, never100(0)...), made(groupCalm, "b", 0, never100(0)...)
	late := made(groupLate, "late", 0, never100(100)...) // chosen on streams in order alone, as for the others
	for _, k := range []int{slices.IndexFunc(tests,
		func(x test) bool { return x.name == joint[ownTests[0]][2].name })} {
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
	peers := []peer{{Stream: turns, Detector: "D", Setting: "s", First: never100(0)},
		{Stream: calibratedName, Detector: "D", Setting: "s", First: never100(0)}}
	ours := []result{made(groupCalm, "calm", 0, never100(0)...)}
	for _, c := range []struct {
		name         string
		group        string
		mine, theirs int
	}{
		{"first", groupDelay, 1100, 1200}, {"within", groupDelay, 1120, 1100}, {"slow", groupDelay, 1121,
			1100}, {"mine alone", groupDelay, 1100, -1},
		{"theirs alone", groupDelay, -1, 1100}, {"nobody", groupDelay, -1, -1}, {"stable", groupStable, 1100,
			-1}, {"not run", groupDelay, 1100, 0},
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
		barTable(&b, ours, peers, nil, []estimateRow{{truth: .5, confidence: .6, cbpe: .7},
			{truth: .5, confidence: .6, cbpe: math.NaN()}})
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
	adwin := []peer{{Stream: "contrast_s3", Group: groupDelay, Detector: "ADWIN (a − c)", Setting: "delta = 0.002",
		First: []int{10_400, 10_400, 10_400}}}
	good := verdicts([]result{calm, made(groupDelay, "contrast_s3", 10_000, 10_600, 10_600, 10_600)}, adwin)
	bad := verdicts([]result{made(groupCalm, calibratedName, 0, never100(60)...),
		made(groupDelay, "contrast_s3", 10_000, 10_710, 10_710, -1)}, adwin)
	for _, bar := range []string{guarantee, contrast, change} {
		if good[bar] != "yes" || bad[bar] != "**no**" {
			t.Errorf("%s: %q where it is met, %q where not", bar, good[bar], bad[bar])
		}
	}
	if !withinBound(.11, .1, 1000) || withinBound(.14, .1, 1000) || !withinBound(1, 1, 10) {
		t.Error("a share may be above its bound by three standard errors, no more")
	}
}

// TestMatchedBars: the bin and the slice at which ADWIN fares as in the simulation are judged, and no other.
func TestMatchedBars(t *testing.T) {
	var all []spot
	for _, w := range []placed{{name: "hard bin", bin: 1}, {name: "bin", bin: 2}, {name: "easy bin", bin: 3},
		{name: "not run", bin: 4}, {name: "slice", bin: -1, corruption: shareCorruption},
		{name: "large slice", bin: -1, corruption: shareCorruption}, {name: "other slice", bin: -1, corruption: "x"}} {
		all = append(all, spot{placed: w})
	}
	runs := func(found, at int) []int { // of 20
		out := make([]int, 20)
		for i := range out {
			if out[i] = -1; i < found {
				out[i] = at
			}
		}
		return out
	}
	var peers []peer
	adwin := map[string][]int{"hard bin": runs(2, 19_000), "bin": runs(6, 17_000), "easy bin": runs(20, 16_000),
		"slice": runs(20, 16_000), "large slice": runs(20, 13_000), "other slice": runs(20, 15_856)}
	for name, first := range adwin {
		peers = append(peers, peer{Stream: name, Group: groupWhere, Detector: yardstick, Setting: yardstickSetting,
			First: first})
	}
	for _, c := range []struct {
		bin, slice int
		want       [2]bool
	}{{4100, 40_800, [2]bool{true, true}}, {4101, 40_801, [2]bool{}}, {-10_001, -10_001, [2]bool{}}} {
		ours := []result{made(groupWhere, "bin", 10_000, 10_000+c.bin),
			made(groupWhere, "slice", 10_000, 10_000+c.slice)}
		// the verdict is not theirs
		for _, other := range []string{"hard bin", "easy bin", "large slice", "other slice"} {
			ours = append(ours, made(groupWhere, other, 10_000, map[bool]int{true: -1, false: 10_001}[c.want[0]]))
		}
		var got []bool
		var text []string
		matchedBars(ours, peers, all, func(_, measured string, met bool) {
			got, text = append(got, met),
				append(text, measured)
		})
		if len(got) != 2 || got[0] != c.want[0] || got[1] != c.want[1] {
			t.Errorf("%d and %d rows: met %v, want %v", c.bin, c.slice, got, c.want)
			continue
		}
		if !strings.Contains(text[0], "at bin (ADWIN: 30.0 % found)") ||
			!strings.Contains(text[1], "at slice (ADWIN: 100.0 % found, 6000)") {
			t.Errorf("judged at %q", text)
		}
	}
}

// TestPlaceOracle: the rates of a slice by bin, summed row by row; none where no bin is outside the tolerance.
func TestPlaceOracle(t *testing.T) {
	s := toyScores(3000, 5)
	s.z["resnet20"], s.z["resnet20_x"] = s.z["toy"], s.z["toy"]
	p, q := s.calibrated(), s.rows("resnet20_x", 1)
	const share = .3
	growth, moved := 0., 0.
	for j := range bins {
		var n, a, c float64 // of the bin, a row in the slice or not
		for i := range p.c {
			if binOf(p.c[i]) != j {
				continue
			}
			n, c, a = n+1, c+p.c[i], a+(1-share)*p.c[i]
			if q.right[i] {
				a += share
			}
		}
		if n == 0 {
			continue
		}
		moved += (a - c) / float64(len(p.c))
		if q := c/n + tolerance; a/n > q {
			growth += n / float64(len(p.c)) * kl(a/n, q)
		} else if q := c/n - tolerance; a/n < q {
			growth += n / float64(len(p.c)) * kl(a/n, q)
		}
	}
	got, by := s.placeOracle(placed{bin: -1, corruption: "x", share: share})
	if want := math.Log(1e5) / growth; growth == 0 || !(math.Abs(got-want) <= 1e-9*want) ||
		!(math.Abs(by-moved) <= 1e-12) {
		t.Errorf("oracle %v, moved by %v, want %v and %v", got, by, want, moved)
	}
	if got, _ := s.placeOracle(placed{bin: -1, corruption: "x", share: 1e-6}); !math.IsInf(got, 1) {
		t.Errorf("a slice within the tolerance: oracle %v, want none", got)
	}
}

// TestWhereBars: the median bin and the median corruption are judged; what keeps the null is named where the bar is
// missed.
func TestWhereBars(t *testing.T) {
	for _, c := range []struct {
		rows []int
		met  bool
		text string
	}{{[]int{40_000, 40_800, -1}, true, "40800, of 3"}, {[]int{40_000, -1, -1}, false, "never, of 3 (1 of them"}} {
		var ours []result
		for i, rows := range c.rows {
			at := -1
			if rows >= 0 {
				at = 10_000 + rows
			}
			ours = append(ours, made(groupWhere, sliceName(corruptions[i]), 10_000, at))
		}
		all := []spot{{placed: placed{name: sliceName(corruptions[0])}, oracle: 100},
			{placed: placed{name: sliceName(corruptions[2])}, oracle: math.Inf(1)}}
		calls := 0
		whereBars(ours, all, func(_, measured string, met bool) {
			calls++
			if met != c.met || !strings.HasPrefix(measured, c.text) {
				t.Errorf("%v: %q, met %v, want %q, %v", c.rows, measured, met, c.text, c.met)
			}
		})
		if calls != 1 {
			t.Errorf("%v: %d bars", c.rows, calls)
		}
	}
}
