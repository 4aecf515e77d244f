package main

import (
	"fmt"
	"math"
	"strings"
)

// designed are the medians in rows that the construction showed when it was simulated, at 1/α = 1e5 and ε = .02 with
// panes of 100. why is what explains a miss.
var designed = []struct {
	name string
	most int
	why  string
}{
	{"gauss_noise_s1", 200, ""}, {"gauss_noise_s3", 200, ""}, {"contrast_s3", 700, ""}, {"gauss_blur_s3", 600,
		""}, {"temperature ×0.67", 1400, ""},
	{"temperature ×1.25", 2200, ""},
	{"bin (0.6, 0.67] off by 0.2", 4100,
		"the simulation does not say which bin it was; this one has 5 % of the rows, and betting on its true rate " +
			"takes 3,390: all bins are below"},
	{"overconfident by 0.05", 2500, ""}, {"overconfident by 0.10", 500, ""},
	{"gauss_noise_s3 in a slice of 5 %", 40_800,
		"the simulation does not say which corruption it was; this one moves the whole by .023 where .02 is allowed: " +
			"all corruptions are below"},
}

// barTable says of every bar what was measured and whether it is met.
func barTable(b *strings.Builder, ours []result, peers []peer, all []spot, estimates []estimateRow) {
	var rows [][]string
	add := func(bar, measured string, met bool) {
		text := "**no**"
		if met {
			text = "yes"
		}
		rows = append(rows, []string{bar, measured, text})
	}
	guaranteeBars(ours, add)
	delayBars(ours, add)
	changeBar(ours, peers, add)
	whereBars(ours, all, add)
	matchedBars(ours, peers, all, add)
	for k, own := range ownTests {
		if good, total := equalScore(ours, peers, k); total > 0 && len(peers) > 0 {
			add(fmt.Sprintf("at equal false alarms first or within 1.2× of the best in 70 %% of the changes (%s)", own),
				fmt.Sprintf("%d of %d", good, total), float64(good) >= .7*float64(total))
		}
	}
	stableBars(ours, add)
	below, compared := 0, 0
	for _, e := range estimates {
		if math.IsNaN(e.cbpe) {
			continue
		}
		compared++
		if math.Abs(e.confidence-e.truth) <= math.Abs(e.cbpe-e.truth) {
			below++
		}
	}
	rows = append(rows, []string{"accuracy without labels, CBPE side by side (no bar)",
		fmt.Sprintf("confidence-based is as near to the truth or nearer in %d of %d", below, compared), ""})
	table(b, "**Bars**", []string{"bar", "measured", "met"}, rows)
}

// guaranteeBars: false alarms within the guarantee, with and without late labels, and next to none inside the
// tolerance.
func guaranteeBars(ours []result, add func(bar, measured string, met bool)) {
	for _, group := range []string{groupCalm, groupLate} {
		cells, over, inside, where := 0, 0, 0., ""
		for _, r := range ours {
			if r.Group != group || !r.Bounded {
				continue
			}
			for _, c := range calmColumns {
				if strings.HasPrefix(c.name, "change") && moves(r.Name) {
					continue
				}
				cells++
				if !withinBound(summarise(r.at(c.name, c.level), 0).crossed, c.bound(r.Rows), r.runs()) {
					over++
				}
			}
			for _, c := range []column{{"alarm", 3.15e6}, {"alarm", 1e5}, {"bins .02", 1e5}} {
				if x := summarise(r.at(c.name, c.level), 0).crossed; x >= inside {
					inside, where = x, r.Name+", "+c.String()
				}
			}
		}
		if cells == 0 {
			continue
		}
		add(group+": within the guarantee everywhere", fmt.Sprintf("%d of %d cells of the table above their bound",
			over, cells), over == 0)
		add(group+": alarms in at most 1 % of the runs within the tolerance (1/α of 1e5 and more)",
			fmt.Sprintf("worst %s (%s)", percent(inside), where), inside <= calmest)
	}
}

// withinBound is whether a share of n runs can be of a probability within the bound: it may be above by three standard
// errors.
func withinBound(share, bound float64, n int) bool {
	return share <= bound+3*math.Sqrt(bound*(1-bound)/float64(n))
}

// delayBars: not slower than the simulation of the construction.
func delayBars(ours []result, add func(bar, measured string, met bool)) {
	for _, d := range designed {
		if r := named(ours, d.name); r != nil {
			s := summarise(r.at("bins .02", 1e5), r.Change)
			met, text := s.median >= 0 && s.median <= d.most, s.rows()
			if !met && d.why != "" {
				text += " (" + d.why + ")"
			}
			add(fmt.Sprintf("%s: at most %d rows (bins .02, 1e5)", d.name, d.most), text, met)
		}
	}
}

// changeBar: the change mode within 1.5× of ADWIN at its default.
func changeBar(ours []result, peers []peer, add func(bar, measured string, met bool)) {
	var parts []string
	met, any := true, false
	for _, name := range corruptions {
		adwin := find(peers, yardstick, yardstickSetting, name)
		r := named(ours, name)
		if r == nil || len(adwin.First) == 0 {
			continue
		}
		any = true
		mine, theirs := summarise(r.at("change, panes of 20", 1e4), r.Change), adwin.summaryAfter(r.Change)
		ratio := float64(mine.median) / float64(theirs.median)
		parts = append(parts, fmt.Sprintf("%s %d/%d = %.2f", name, mine.median, theirs.median, ratio))
		met = met && mine.median >= 0 && ratio <= 1.5
	}
	if any {
		add("change mode (panes of 20, 1e4) within 1.5× of ADWIN (δ = .002) on corruptions", strings.Join(parts, "; "),
			met)
	}
}

// stableBars: a model that is wrong from the first row is found.
func stableBars(ours []result, add func(bar, measured string, met bool)) {
	for _, r := range ours {
		if r.Group != groupStable {
			continue
		}
		s := summarise(r.at("bins .02", 1e5), 0)
		add(r.Name+" from the first row: found", fmt.Sprintf("in %s of the runs, median %s labels (bins .02, 1e5)",
			percent(s.crossed), s.rows()), s.median >= 0)
	}
}
