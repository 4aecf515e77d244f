package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/bench/student"
)

// The bars: what another implementation found on the same rows.
const (
	barGain      = 15.0 // points of accuracy over no change
	barECE       = 2.5
	barAUECE     = 0.5 // AU to CE in a drift
	barAUGain    = 0.5 // AU below CE on clean rows
	barAUAcc     = 0.8
	barMaCAcc    = 82.3
	barMaCSpread = 1.0
)

// mean is that of a measure over the seeds.
func (r results) mean(setting, name string, c measurement, tempered bool) float64 {
	v, _ := student.Interval(listOf(c, r.pick(setting, find(methods(), name), tempered), tempered), 0)
	return v
}

// bars compares the tables with the bars, a line each.
func (r results) bars(b *strings.Builder, drift, ideal table) {
	b.WriteString("Means over the seeds against what another implementation had found on these rows:\n\n")
	header(b, "bar", "measured", "")
	line := func(bar, got string, holds bool) {
		verdict := "holds"
		if !holds {
			verdict = "**misses**"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", bar, got, verdict)
	}
	for _, s := range drift.settings {
		r.driftBars(line, s, drift.methods)
	}
	c := ideal.settings[0].name
	ce, au := r.mean(c, "ce", ece, false), r.mean(c, "au_msp", ece, false)
	line("clean: ECE of AU at least .5 below CE, equal decay", fmt.Sprintf("%.2f to %.2f", au, ce), ce-au >= barAUGain)
	a, e := r.mean(c, "maccal", accuracy, false), r.mean(c, "maccal", ece, false)
	line("clean: MaC-Cal stable, γ = .95, ECE ≤ 2.5 at ≥ 82.3 %", fmt.Sprintf("%.2f at %.2f", e, a), e <= barECE &&
		a >= barMaCAcc)
	pa, pe := r.mean(c, "maccal_printed", accuracy, false), r.mean(c, "maccal_printed", ece, false)
	qa, qe := r.mean(c, "bottleneck_last", accuracy, false), r.mean(c, "bottleneck_last", ece, false)
	line("clean: MaC-Cal printed within a point of the q = 1 bottleneck",
		fmt.Sprintf("accuracy %.2f and %.2f, ECE %.2f and %.2f", pa, qa, pe, qe),
		math.Abs(pa-qa) <= barMaCSpread && math.Abs(pe-qe) <= barMaCSpread)
	var all []string
	for _, s := range append(append([]setting{}, drift.settings...), ideal.settings...) {
		all = append(all, r.beaten(s, drift.methods)...)
	}
	got := "nobody"
	if len(all) > 0 {
		got = strings.Join(all, ", ")
	}
	line("CE + temperature reliably beaten on NLL or ECE by", got, len(all) == 0)
	r.autoBar(line, append(append(append([]setting{}, drift.settings...), ideal.settings...), special()...))
	b.WriteString("\n")
}

// autoBar says where auto is worse than the reference beyond the interval of their difference.
func (r results) autoBar(line func(bar, got string, holds bool), settings []setting) {
	var worse []string
	most, where, compared := math.Inf(-1), "", 0
	for _, s := range settings {
		trials := r.pick(s.name, find(methods(), "auto"), true)
		for _, c := range []measurement{nll, ece} {
			d, h := student.Interval(less(c.values(trials, true), r.base(s.name, c)), sharedRows)
			if math.IsNaN(h) {
				continue
			}
			if c.title == nll.title {
				if compared++; d > most {
					most, where = d, s.title
				}
			}
			if d > h && strings.Trim(fmt.Sprintf(c.format, d), "-0.") != "" {
				worse = append(worse, fmt.Sprintf("%s (%s "+c.format+")", s.title, c.title, d))
			}
		}
	}
	got := fmt.Sprintf("nowhere of %d settings; the largest mean difference of NLL is %+.4f (%s)", compared, most,
		where)
	if len(worse) > 0 {
		got = strings.Join(worse, ", ")
	}
	line("`--recipe auto` worse than CE + temperature beyond noise, on NLL or ECE", got, len(worse) == 0)
}

func (r results) driftBars(line func(bar, got string, holds bool), s setting, list []method) {
	was := r.mean(s.name, "unchanged", accuracy, false)
	most, whose := 0.0, ""
	var short, plain []string
	for _, m := range list {
		if m.kind != trained || strings.HasPrefix(m.name, "au_through") {
			continue
		}
		if g := r.mean(s.name, m.name, accuracy, true) - was; g < barGain {
			short = append(short, fmt.Sprintf("%s %.1f", m.title, g))
		}
		if e := r.mean(s.name, m.name, ece, true); e > most {
			most, whose = e, m.title
		}
		if e := r.mean(s.name, m.name, ece, false); e > barECE {
			plain = append(plain, fmt.Sprintf("%s %.2f", m.title, e))
		}
	}
	line(s.title+": every recipe gains 15 points of accuracy", allBut(short), len(short) == 0)
	line(s.title+": every recipe's ECE ≤ 2.5 with a temperature", fmt.Sprintf("most %.2f (%s)", most, whose),
		most <= barECE)
	line(s.title+": and without one", allBut(plain), len(plain) == 0)
	var gaps []string
	near := true
	for _, csf := range []string{"msp", "margin", "negent"} {
		e := r.mean(s.name, "au_"+csf, ece, false) - r.mean(s.name, "ce", ece, false)
		a := r.mean(s.name, "au_"+csf, accuracy, false) - r.mean(s.name, "ce", accuracy, false)
		gaps = append(gaps, fmt.Sprintf("%s %+.2f, %+.2f", csf, e, a))
		near = near && e <= barAUECE && a >= -barAUAcc
	}
	line(s.title+": detached AU within .5 of CE in ECE and .8 in accuracy", strings.Join(gaps, "; "), near)
}

func allBut(list []string) string {
	if len(list) == 0 {
		return "all"
	}
	return "all but " + strings.Join(list, ", ")
}

// beaten are the methods that are better than the reference beyond the interval of their difference. More rows are no
// method.
func (r results) beaten(s setting, list []method) []string {
	var out []string
	for _, m := range list {
		if m.refit {
			continue
		}
		for _, tempered := range []bool{false, true} {
			for _, c := range []measurement{nll, ece} {
				d, h := student.Interval(less(c.values(r.pick(s.name, m, tempered), tempered), r.base(s.name, c)),
					sharedRows)
				if d < -h && strings.Trim(fmt.Sprintf(c.format, d), "-0.") != "" {
					title := m.title
					if tempered && m.kind == trained {
						title += " + T"
					}
					out = append(out, fmt.Sprintf("%s (%s, %s "+c.format+")", title, s.title, c.title, d))
				}
			}
		}
	}
	return out
}
