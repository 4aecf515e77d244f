package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// healed is what a policy serves after a fault has gone.
type healed struct {
	fault    string
	raw, ece float64 // on the rows from healWithin after the fault to 2,000 later
	followed float64 // the same with refit.follow
	lost     toRaw
}

func (h healed) met() bool { return h.ece < healedECE }

func measureHealing(o options, unseen bool) ([]healed, error) {
	all, err := healings(&library{dir: o.data}, unseen)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h healing) bool { return !strings.Contains(h.name, o.only) })
	return eachOf(o, all, func(h healing) (healed, error) {
		s, err := h.make()
		if err != nil {
			return healed{}, err
		}
		ours, err := plumbline(s, taskConfig())
		if err != nil {
			return healed{}, err
		}
		changes := ours.published
		from := healBefore + h.rows + healWithin
		out := healed{h.fault, eceOf(s, nil, from, from+2*healWithin), eceOf(s, changes, from, from+2*healWithin),
			eceOf(s, ours.followed, from, from+2*healWithin), lost(s, changes)}
		if o.verbose {
			fmt.Fprintf(os.Stderr, "%s: raw %.4f, served %.4f %s; %v\n", h.name, out.raw, out.ece,
				met(out.met()), out.lost)
			for _, c := range changes {
				fmt.Fprintf(os.Stderr, "  row %d (%+d) %s %s\n", c.row, c.row-healBefore-h.rows, c.reason, c.method)
			}
		}
		return out, nil
	})
}

// eachOf measures some streams at a time.
func eachOf[S, R any](o options, all []S, one func(S) (R, error)) ([]R, error) {
	all = all[:min(len(all), o.few)]
	out, errs := make([]R, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	places := make(chan struct{}, max(o.workers, 1))
	for i, s := range all {
		wg.Go(func() {
			places <- struct{}{}
			out[i], errs[i] = one(s)
			<-places
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eceOf is the ECE of some rows under a policy.
func eceOf(s *stream, changes []change, from, to int) float64 {
	conf, hit, _ := servedRows(s, changes)
	return metric.ECE(metric.EqualWidth(conf[from:to], hit[from:to], nil, bins))
}

// servedRows is what a policy serves: top confidence, whether it is right, and NLL.
func servedRows(s *stream, changes []change) (conf []float64, hit []bool, nll []float64) {
	z, p := make([]float64, s.k), make([]float64, s.k)
	var cal calibrator.Calibrator
	for i := range s.rows() {
		for len(changes) > 0 && changes[0].row <= i {
			cal, changes = changes[0].cal, changes[1:]
		}
		l, c, h := apply(s, i, cal, z, p)
		conf, hit, nll = append(conf, c), append(hit, h), append(nll, l)
	}
	return conf, hit, nll
}

func renderHealing(title string, all []healed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| faults that heal, %s | streams | served ECE below %g | worst | with `refit.follow` | worst "+
		"| raw ECE |\n"+
		"|---|---|---|---|---|---|---|\n", title, healedECE)
	count := func(name string, all []healed) {
		good, worst, raw, goodToo, worstToo := 0, 0.0, 0.0, 0, 0.0
		for _, h := range all {
			good, worst, raw = good+step(h.met()), max(worst, h.ece), raw+h.raw/float64(len(all))
			goodToo, worstToo = goodToo+step(h.followed < healedECE), max(worstToo, h.followed)
		}
		fmt.Fprintf(&b, "| %s | %d | %d (%.0f %%) | %.3f | %d (%.0f %%) | %.3f | %.3f |\n", name, len(all), good,
			100*float64(good)/float64(max(len(all), 1)), worst, goodToo,
			100*float64(goodToo)/float64(max(len(all), 1)), worstToo, raw)
	}
	for _, f := range faulty {
		var of []healed
		for _, h := range all {
			if h.fault == f.name {
				of = append(of, h)
			}
		}
		count(f.name, of)
	}
	count("all", all)
	var most toRaw
	for _, h := range all {
		most.add(h.lost)
	}
	fmt.Fprintf(&b, "\nFaults that heal, %s: %v.\n", title, most)
	return b.String()
}

// kindScore is how one policy did on a stream of the set first.
type kindScore struct{ ece, nll, half float64 }

// The policies of the set first, in order.
var firstPolicies = []string{"plumbline", "plumbline, `refit.follow`", "temperature every 1,000 rows",
	"temperature every 2,000 rows",
	"online Platt", "online Platt, its map kept for 100 rows", "temperature every week",
	"the best temperature of each 1,000 rows, in hindsight",
	"the model as it is"}

// What the bars compare, of firstPolicies. A stream is calibrated pane by pane, so the map of the rival that can be
// served is kept for a pane.
var (
	firstRivals    = []int{2, 3, 4}
	firstKept      = []int{2, 3, 5}
	firstHindsight = 7
)

type firstResult struct {
	kind   string
	scores []kindScore
	lost   toRaw
	follow float64   // most nats lost by following to what was published, from any row of the stream to any later one
	day    []verdict // of the rows of the day after each publication of plumbline
}

// windowOfFirst is the length of the windows of the mean ECE.
const windowOfFirst = 1000

func measureFirst(o options, of func(*library, int) ([]*source, []uint64, error), half int) ([]firstResult, error) {
	sources, seeds, err := of(&library{dir: o.data}, half)
	if err != nil {
		return nil, err
	}
	all := firsts(sources, seeds)
	all = slices.DeleteFunc(all, func(f first) bool { return !strings.Contains(f.name, o.only) })
	return eachOf(o, all, func(f first) (firstResult, error) {
		s, err := f.make()
		if err != nil {
			return firstResult{}, err
		}
		return f.measure(s, o.verbose)
	})
}

func (f *first) measure(s *stream, verbose bool) (firstResult, error) {
	out := firstResult{kind: f.kind}
	ours, err := plumbline(s, taskConfig())
	if err != nil {
		return out, err
	}
	add := func(changes []change) {
		conf, hit, nll := servedRows(s, changes)
		out.scores = append(out.scores, kindScore{windowedECE(conf, hit), mean1(nll), f.half(s, changes)})
	}
	add(ours.published)
	add(ours.followed)
	out.lost, out.day = lost(s, ours.published), judge(s, ours.published, dayRows, byNLL)
	out.follow = lostBy(s, ours)
	for _, every := range []int{1000, 2000, weekRows} {
		c, err := everyRows(s, every)
		if err != nil {
			return out, err
		}
		add(c)
		if every == 2000 {
			for _, kept := range []int{1, paneRows} {
				told, hit, err := platt(s, kept)
				if err != nil {
					return out, err
				}
				out.scores = append(out.scores, kindScore{windowedECE(told, hit), math.NaN(), math.NaN()})
			}
		}
	}
	best, err := hindsightTemperatures(s)
	if err != nil {
		return out, err
	}
	add(best)
	add(nil)
	if verbose {
		fmt.Fprintf(os.Stderr, "%s: %.4f; %v\n", s.name, out.scores, out.lost)
		for _, c := range ours.followed {
			fmt.Fprintf(os.Stderr, "  row %d %s %s\n", c.row, c.reason, c.cal.Describe())
		}
	}
	return out, nil
}

func mean1(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func windowedECE(conf []float64, hit []bool) (sum float64) {
	n := 0.0
	for from := 0; from+windowOfFirst <= len(conf); from += windowOfFirst {
		to := from + windowOfFirst
		sum += metric.ECE(metric.EqualWidth(conf[from:to], hit[from:to], nil, bins))
		n++
	}
	return sum / n
}

// everyRows is the simple rival: a temperature of the latest rows, as many as there are between two fits.
func everyRows(s *stream, rows int) (out []change, err error) {
	for end := rows; end < s.rows(); end += rows {
		c, err := fitted("temperature", s, end-min(rows, maxRows), end)
		if err != nil {
			return nil, err
		}
		out = append(out, change{end, c, "temperature", "schedule", false})
	}
	return out, nil
}

// hindsightTemperatures have the best temperature of each window, from its first row on.
func hindsightTemperatures(s *stream) (out []change, err error) {
	for from := 0; from+windowOfFirst <= s.rows(); from += windowOfFirst {
		c, err := fitted("temperature", s, from, from+windowOfFirst)
		if err != nil {
			return nil, err
		}
		out = append(out, change{from, c, "temperature", "hindsight", false})
	}
	return out, nil
}

// platt is online Platt scaling of the scores as they are, without calibeating. Its map is that before the latest so
// many rows: with 1, each row is forecast before its label.
func platt(s *stream, kept int) (told []float64, hit []bool, err error) {
	o, err := calibrator.NewOnlinePlatt(calibrator.OnlineSettings{Clip: onlineClip, Calibeating: calibrator.Plain})
	if err != nil {
		return nil, nil, err
	}
	conf, hit, _ := servedRows(s, nil)
	for from := 0; from < len(conf); from += kept {
		to := min(from+kept, len(conf))
		for _, c := range conf[from:to] {
			told = append(told, o.Predict(min(c, 1)))
		}
		for i := from; i < to; i++ {
			if err := o.Update(min(conf[i], 1), hit[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	return told, hit, nil
}

// half is the number of rows from the change until what is in force has at most half the ECE of the raw scores on the
// 2,000 rows that follow; NaN where nothing changes at one row, +Inf where it never has.
func (f *first) half(s *stream, changes []change) float64 {
	if f.change < 0 {
		return math.NaN()
	}
	const ahead = 2000
	raw := map[int]float64{}
	var cal calibrator.Calibrator
	was := -1.0
	for row := f.change; row+ahead <= s.rows(); row += paneRows {
		moved := false
		for len(changes) > 0 && changes[0].row <= row {
			cal, changes, moved = changes[0].cal, changes[1:], true
		}
		if was >= 0 && !moved {
			continue
		}
		from, to := row, row+ahead
		raw[row] = eceOf(s, nil, from, to)
		was = eceOf(s, []change{{row: 0, cal: orIdentity(cal)}}, from, to)
		if was <= raw[row]/2 {
			return float64(row - f.change)
		}
	}
	return math.Inf(1)
}

func orIdentity(c calibrator.Calibrator) calibrator.Calibrator {
	if c == nil {
		return calibrator.Identity{}
	}
	return c
}

func renderFirst(title string, all []firstResult) string {
	var b strings.Builder
	var kinds []string
	byKind := map[string][]firstResult{}
	for _, r := range all {
		if byKind[r.kind] == nil {
			kinds = append(kinds, r.kind)
		}
		byKind[r.kind] = append(byKind[r.kind], r)
	}
	fmt.Fprintf(&b, "\n| mean ECE of windows of %d rows, %s |", windowOfFirst, title)
	for _, k := range kinds {
		fmt.Fprintf(&b, " %s |", k)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(kinds)))
	table := func(suffix, format string, of func(kindScore) float64, pick func([]float64) float64) {
		for i, name := range firstPolicies {
			fmt.Fprintf(&b, "| %s%s |", name, suffix)
			for _, k := range kinds {
				var x []float64
				for _, r := range byKind[k] {
					x = append(x, of(r.scores[i]))
				}
				if v := pick(x); math.IsNaN(v) {
					fmt.Fprint(&b, " – |")
				} else {
					fmt.Fprintf(&b, " "+format+" |", v)
				}
			}
			fmt.Fprintln(&b)
		}
	}
	table("", "%.4f", func(s kindScore) float64 { return s.ece }, mean1)
	table(": NLL", "%.4f", func(s kindScore) float64 { return s.nll }, mean1)
	table(": median rows to half of the raw ECE", "%.0f", func(s kindScore) float64 { return s.half }, median)
	fmt.Fprint(&b, "| plumbline: published, and of these hurt |")
	for _, k := range kinds {
		published, hurt := 0, 0
		for _, r := range byKind[k] {
			for _, v := range r.day {
				published, hurt = published+1, hurt+step(v.hurt())
			}
		}
		fmt.Fprintf(&b, " %d, %d |", published, hurt)
	}
	fmt.Fprintln(&b)
	near, most, follow := 0, toRaw{}, 0.0
	var best, kept [2]int // without following and with it
	for _, r := range all {
		most.add(r.lost)
		follow = max(follow, r.follow)
	}
	for _, k := range kinds {
		m := make([]float64, len(firstPolicies))
		for i := range m {
			for _, r := range byKind[k] {
				m[i] += r.scores[i].ece / float64(len(byKind[k]))
			}
		}
		for i := range best {
			best[i] += step(leads(m, i, firstRivals))
			kept[i] += step(leads(m, i, firstKept))
		}
		near += step(m[0] <= m[firstHindsight]+.006)
	}
	n := len(kinds)
	fmt.Fprintf(&b, "\nBars, %s: windowed ECE at most that of the best rival in all kinds: %d of %d (%s), with "+
		"`refit.follow` %d (%s); where the map of online Platt is kept for %d rows, as that of plumbline is, %d and "+
		"%d (%s); at most .006 above the best temperature in hindsight in five: %d (%s); %v; by following at most "+
		"%.1f nats to what was published.\n", title, best[0], n, met(best[0] == n), best[1], met(best[1] == n),
		paneRows, kept[0], kept[1], met(kept[1] == n), near, met(near >= 5), most, follow)
	return b.String()
}

// leads reports whether a policy has at most the value of each rival.
func leads(m []float64, policy int, rivals []int) bool {
	for _, i := range rivals {
		if m[policy] > m[i] {
			return false
		}
	}
	return true
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
