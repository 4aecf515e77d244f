package main

import (
	"fmt"
	"slices"
	"strings"
)

// render writes the tables of docs/benchmarks.md.
func render(all []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d streams of %d rows. A day is %d rows, a week %d.\n\n", len(all), streamRows, dayRows, weekRows)
	fmt.Fprintln(&b, "| streams | published | by period | on alarm | rollbacks | helped | hurt | of these by a change within the day | no difference | worse at all | hurt until the next |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, kind := range []string{"drifting", "stationary", "all"} {
		count(&b, kind, of(all, kind))
	}
	fmt.Fprintf(&b, "\n*Helped* and *hurt*: the mean NLL of the rows of the day after the publication (or until the next one, where that is sooner), less what the calibrator before would have had, is below or above 0 beyond "+
		"%.3f standard errors. *Worse at all*: it is above 0. *Hurt until the next*: the same of all rows until the next publication, however long that takes and whatever the stream does meanwhile.\n\n", z95)
	fmt.Fprintln(&b, "| mean over the streams (excess ECE in %, over what a calibrated model shows; NLL in nats) | drifting: excess ECE | NLL | stationary: excess ECE | NLL |")
	fmt.Fprintln(&b, "|---|---|---|---|---|")
	for i := range all[0].policies {
		d, s := mean(of(all, "drifting"), i), mean(of(all, "stationary"), i)
		fmt.Fprintf(&b, "| %s | %.2f | %.4f | %.2f | %.4f |\n", title(all[0].policies[i].name), 100*d.excess, d.nll, 100*s.excess, s.nll)
	}
	bars(&b, all)
	return b.String()
}

func title(name string) string {
	switch name {
	case "plumbline":
		return "**plumbline**, `method: auto`"
	case "schedule":
		return "temperature, refitted every week, unseen"
	case "identity":
		return "the model as it is"
	}
	return "`" + name + "`, fitted once after the first week"
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
	fmt.Fprintf(b, "| %d %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", len(all), kind, t.published, t.period, t.alarm, t.rollback, t.helped, t.hurt, t.changed, t.published-t.helped-t.hurt, t.worse, t.later)
}

func mean(all []result, policy int) (m scored) {
	for _, r := range all {
		p := r.policies[policy]
		m.excess += p.excess / float64(len(all))
		m.ece += p.ece / float64(len(all))
		m.nll += p.nll / float64(len(all))
	}
	return m
}

// bars says which of the bars are met.
func bars(b *strings.Builder, all []result) {
	t := tallyOf(all)
	drift := of(all, "drifting")
	ours, sched := mean(drift, 0).excess, mean(drift, 1).excess
	var fixed []float64
	for i := 2; i < len(all[0].policies); i++ {
		fixed = append(fixed, mean(drift, i).excess)
	}
	share, stable := 0.0, 0.0
	if t.published > 0 {
		share, stable = float64(t.hurt)/float64(t.published), float64(t.hurt-t.changed)/float64(t.published)
	}
	fmt.Fprintf(b, "\nBars: hurt in at most 1 %% of publications: %.1f %% (%s); without those whose stream became another one within the day after, which no test foresees: %.1f %% (%s). Excess ECE on the drifting streams at most half of the schedule's: %.2f of it (%s), and below every fixed calibrator's: %.2f %% beside %.2f %% of the best (%s).\n",
		100*share, met(share <= .01), 100*stable, met(stable <= .01), ours/sched, met(ours <= sched/2), 100*ours, 100*slices.Min(fixed), met(ours < slices.Min(fixed)))
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "**not met**"
}
