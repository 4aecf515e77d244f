package main

import (
	"fmt"
	"slices"
	"strings"
)

// render writes the tables of bench/results.
func render(sets []*setOf) string {
	var b strings.Builder
	for _, s := range sets {
		rows := 0
		for _, r := range s.results {
			rows += r.rows
		}
		fmt.Fprintf(&b, "Streams %s: %d of %d rows on average. ", s.name, len(s.results), rows/max(len(s.results), 1))
	}
	fmt.Fprintf(&b, "A day is %d rows, a week %d.\n\n", dayRows, weekRows)
	fmt.Fprintln(&b, "| streams | published | by period | on alarm | rollbacks | helped | hurt | of these by a "+
		"change within the day | no difference | worse at all | hurt until the next |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, s := range sets {
		for _, kind := range []string{"drifting", "stationary", "all"} {
			if rs := of(s.results, kind); len(rs) > 0 {
				count(&b, s.name+", "+kind, rs)
			}
		}
	}
	fmt.Fprintf(&b, "\n*Helped* and *hurt*: the mean NLL of the rows of the day after the publication (or until the "+
		"next one, where that is sooner), less what the calibrator before would have had, is below or above 0 beyond "+
		"%.3f standard errors. *Worse at all*: it is above 0. *Hurt until the next*: the same of all rows until the "+
		"next publication, however long that takes and whatever the stream does meanwhile. "+
		"A publication with no effect on the mean would count as hurt in 5 %% of cases, by chance.\n\n", z95)
	for _, s := range sets {
		var all toRaw
		var not unavoidable
		published, hurt := 0, 0
		for _, r := range s.results {
			all.add(r.lost)
			if s.settled || !r.stream.drifting {
				not.add(r.notOurs)
				t := tallyOf([]result{r})
				published, hurt = published+t.published, hurt+t.hurt
			}
		}
		fmt.Fprintf(&b, "Streams %s: %v. Where a stream is stationary in the long run, %d of %d publications hurt on "+
			"the day after; %v.\n\n", s.name, all, hurt, published, not)
	}
	policies(&b, sets)
	onlineTable(&b, sets)
	for _, s := range sets {
		bars(&b, s)
	}
	together(&b, sets)
	return b.String()
}

func policies(b *strings.Builder, sets []*setOf) {
	fmt.Fprint(b, "| mean over the streams (excess ECE in %, over what a calibrated model shows; NLL in nats) |")
	for _, s := range sets {
		fmt.Fprintf(b, " %s, drifting: excess ECE | NLL | stationary: excess ECE | NLL |", s.name)
	}
	fmt.Fprint(b, "\n|---|"+strings.Repeat("---|---|---|---|", len(sets))+"\n")
	for i, p := range sets[0].results[0].policies {
		fmt.Fprintf(b, "| %s |", title(p.Name))
		for _, s := range sets {
			d, st := mean(of(s.results, "drifting"), i), mean(of(s.results, "stationary"), i)
			if len(of(s.results, "stationary")) == 0 {
				fmt.Fprintf(b, " %.2f | %.4f | – | – |", 100*d.Excess, d.NLL)
				continue
			}
			fmt.Fprintf(b, " %.2f | %.4f | %.2f | %.4f |", 100*d.Excess, d.NLL, 100*st.Excess, st.NLL)
		}
		fmt.Fprintln(b)
	}
}

func title(name string) string {
	switch name {
	case "plumbline":
		return "**plumbline**, `method: auto`"
	case "follow":
		return "with `refit.follow`"
	case "schedule":
		return "temperature, refitted every week, unseen"
	case "identity":
		return "the model as it is"
	}
	return "`" + name + "`, fitted once after the first week"
}

// onlineTable is online Platt scaling with calibeating.
func onlineTable(b *strings.Builder, sets []*setOf) {
	fmt.Fprint(b, "\n**Online Platt scaling with calibeating** (`calibrator.OnlinePlatt`), each row forecast before "+
		"its label: its regret, the mean log loss of Platt's map less that of the best fixed one chosen with "+
		"hindsight on the whole stream (10⁻³ nats a row, mean and largest over the streams; below 0 it is better "+
		"than any that stands still), and the excess ECE of what it forecasts (%).\n\n")
	fmt.Fprintln(b, "| streams | on the scores as they are: regret | largest | excess ECE | on what was published: "+
		"regret | largest | excess ECE |\n|---|---|---|---|---|---|---|")
	for _, s := range sets {
		for _, kind := range []string{"drifting", "stationary"} {
			rs := of(s.results, kind)
			if len(rs) == 0 {
				continue
			}
			var raw, top regret
			worst := [2]float64{rs[0].raw.Mean, rs[0].top.Mean}
			for _, r := range rs {
				n := float64(len(rs))
				raw.Mean, raw.Excess = raw.Mean+r.raw.Mean/n, raw.Excess+r.raw.Excess/n
				top.Mean, top.Excess = top.Mean+r.top.Mean/n, top.Excess+r.top.Excess/n
				worst[0], worst[1] = max(worst[0], r.raw.Mean), max(worst[1], r.top.Mean)
			}
			fmt.Fprintf(b, "| %s, %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", s.name, kind,
				1000*raw.Mean, 1000*worst[0], 100*raw.Excess, 1000*top.Mean, 1000*worst[1], 100*top.Excess)
		}
	}
}

func of(all []result, kind string) (out []result) {
	for _, r := range all {
		if kind == "all" || r.stream.drifting == (kind == "drifting") {
			out = append(out, r)
		}
	}
	return out
}

type tally struct{ published, period, alarm, rollback, helped, hurt, changed, worse, later int }

func tallyOf(all []result) (t tally) {
	for _, r := range all {
		for i, c := range r.ours {
			v := r.day[i]
			if v.rows < paneRows {
				continue // at the stream's end
			}
			t.published++
			switch c.reason {
			case "period":
				t.period++
			case "alarm":
				t.alarm++
			case "rollback":
				t.rollback++
			}
			t.helped += step(v.helped())
			t.hurt += step(v.hurt())
			t.changed += step(v.hurt() && r.stream.changesIn(c.row, c.row+v.rows))
			t.worse += step(v.diff > 0)
			t.later += step(r.whole[i].hurt())
		}
	}
	return t
}

func count(b *strings.Builder, kind string, all []result) {
	t := tallyOf(all)
	fmt.Fprintf(b, "| %d %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", len(all), kind, t.published,
		t.period, t.alarm, t.rollback, t.helped, t.hurt, t.changed, t.published-t.helped-t.hurt, t.worse, t.later)
}

func mean(all []result, policy int) (m scored) {
	for _, r := range all {
		p := r.policies[policy]
		m.Excess += p.Excess / float64(len(all))
		m.ECE += p.ECE / float64(len(all))
		m.NLL += p.NLL / float64(len(all))
	}
	return m
}

// bars says which of the bars are met on a set.
func bars(b *strings.Builder, set *setOf) {
	all := set.results
	if len(all[0].policies) < 3 {
		return
	}
	t := tallyOf(all)
	drift := of(all, "drifting")
	ours, sched := mean(drift, 0).Excess, mean(drift, 2).Excess
	var fixed []float64
	for i := 3; i < len(all[0].policies); i++ {
		fixed = append(fixed, mean(drift, i).Excess)
	}
	share, stable := 0.0, 0.0
	if t.published > 0 {
		share, stable = float64(t.hurt)/float64(t.published), float64(t.hurt-t.changed)/float64(t.published)
	}
	fmt.Fprintf(b, "\nBars, streams %s: hurt in at most 1 %% of publications: %d of %d, %.1f %% (%s); without those "+
		"whose stream became another one within the day after, which no test foresees: %.1f %% (%s). Excess ECE on "+
		"the drifting streams at most half of the schedule's: %.2f of it (%s), and below every fixed calibrator's: "+
		"%.2f %% beside %.2f %% of the best (%s).\n",
		set.name, t.hurt, t.published, 100*share, met(share <= .01), 100*stable, met(stable <= .01), ours/sched,
		met(ours <= sched/2), 100*ours, 100*slices.Min(fixed), met(ours < slices.Min(fixed)))
}

// together says how often publications hurt on the sets whose rows stand as they came.
func together(b *strings.Builder, sets []*setOf) {
	var all []result
	var names []string
	for _, s := range sets {
		if !strings.HasSuffix(s.name, "in runs") {
			all, names = append(all, s.results...), append(names, s.name)
		}
	}
	if t := tallyOf(all); len(names) > 1 && t.published > 0 {
		share := float64(t.hurt) / float64(t.published)
		fmt.Fprintf(b, "\nStreams %s, together: hurt %d of %d, %.1f %% (%s).\n", strings.Join(names, " and "), t.hurt,
			t.published, 100*share, met(share <= .01))
	}
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "**not met**"
}
