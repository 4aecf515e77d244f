package main

import (
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/bench/student"
)

// render makes the tables.
func render(r results) string {
	var b strings.Builder
	drift, ideal, parts, more := tables()
	r.bars(&b, drift, ideal)
	for i, s := range append(drift.settings, ideal.settings...) {
		name := "A, " + s.title
		if i == len(drift.settings) {
			name = "B, clean"
		}
		r.full(&b, name, s.name, drift.methods)
	}
	r.autoTable(&b, append(append(append([]setting{}, drift.settings...), ideal.settings...), more.settings...))
	r.ablationTable(&b, parts)
	r.specialTable(&b, more, false)
	r.specialTable(&b, more, true)
	return b.String()
}

func find(list []method, name string) method {
	for _, m := range list {
		if m.name == name {
			return m
		}
	}
	panic("train: no method " + name)
}

// base are the values of the reference, with its temperature.
func (r results) base(setting string, c measurement) map[uint64]float64 {
	return c.values(r.pick(setting, find(methods(), reference), true), true)
}

// header writes the first two lines of a table.
func header(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n" + strings.Repeat("|---", len(cells)) + "|\n")
}

// full is every measure of every method, plain and with a temperature.
func (r results) full(b *strings.Builder, name, setting string, list []method) {
	fmt.Fprintf(b, "%s:\n\n", name)
	titles := []string{"method"}
	for _, c := range measures {
		titles = append(titles, c.title)
	}
	header(b, titles...)
	for _, m := range list {
		for _, tempered := range []bool{false, true} {
			if tempered && m.kind != trained {
				continue
			}
			title := m.title
			if tempered {
				title += " + T"
			}
			cells := []string{title}
			trials := r.pick(setting, m, tempered)
			for _, c := range measures {
				cells = append(cells, c.cell(trials, tempered, r.base(setting, c)))
			}
			b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		}
	}
	b.WriteString("\n")
}

// autoTable is auto less cross-entropy with a temperature on every setting.
func (r results) autoTable(b *strings.Builder, settings []setting) {
	b.WriteString("`--recipe auto` less cross-entropy with a temperature (rate by validation), paired by seed, " +
		"with a 95 % interval that takes the seeds as independent:\n\n")
	header(b, "setting", "NLL", "ECE", "accuracy", "recipes chosen")
	m := find(methods(), "auto")
	for _, s := range settings {
		trials := r.pick(s.name, m, true)
		cells := []string{s.title}
		for _, c := range []measurement{nll, ece, accuracy} {
			cells = append(cells, c.difference(less(c.values(trials, true), r.base(s.name, c))))
		}
		count := map[string]int{}
		var order []string
		for seed := range uint64(seeds) {
			if t, ok := trials[seed]; ok {
				if count[t.Chosen]++; count[t.Chosen] == 1 {
					order = append(order, t.Chosen)
				}
			}
		}
		for i, name := range order {
			order[i] = fmt.Sprintf("%s %d", strings.ReplaceAll(name, "cross_entropy", "ce"), count[name])
		}
		b.WriteString("| " + strings.Join(append(cells, strings.Join(order, ", ")), " | ") + " |\n")
	}
	b.WriteString("\n")
}

// difference shows the mean of differences by seed with its interval.
func (c measurement) difference(x []float64) string {
	if len(x) == 0 {
		return "–"
	}
	d, h := student.Interval(x, 0)
	text := fmt.Sprintf("%+"+c.format[1:], d)
	if len(x) > 1 {
		text += fmt.Sprintf(" ±"+c.format, h)
	}
	if len(x) < seeds {
		text += fmt.Sprintf(" (%d)", len(x))
	}
	return text
}

func (r results) ablationTable(b *strings.Builder, t table) {
	b.WriteString("MaC-Cal's parts, put on one after the other (γ = .95, the preset's rate; q of the last epoch):\n\n")
	titles := []string{"head"}
	for _, s := range t.settings {
		for _, c := range []string{"accuracy", "ECE", "NLL", "ECE + T", "NLL + T", "q"} {
			titles = append(titles, s.title+": "+c)
		}
	}
	header(b, titles...)
	for _, m := range t.methods {
		cells := []string{m.title}
		for _, s := range t.settings {
			trials := r.pick(s.name, m, false)
			q := measurement{"q", "%.2f", func(o outcome) float64 { return o.Q }, false}
			for _, c := range []measurement{accuracy, ece, nll} {
				cells = append(cells, c.cell(trials, false, nil))
			}
			cells = append(cells, ece.cell(trials, true, nil), nll.cell(trials, true, nil))
			mean, _ := student.Interval(list(q.values(trials, false)), 0)
			cells = append(cells, fmt.Sprintf("%.2f", mean))
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString("\n")
}

// specialTable has accuracy / ECE / NLL of few methods on the special settings.
func (r results) specialTable(b *strings.Builder, t table, tempered bool) {
	how := "as trained"
	if tempered {
		how = "with a temperature"
	}
	fmt.Fprintf(b, "Accuracy / ECE / NLL %s; bold or in italics by NLL, compared with cross-entropy %s:\n\n", how, how)
	var list []method
	titles := []string{"setting"}
	for _, m := range t.methods {
		if tempered && m.kind == unchanged || !tempered && (m.kind == temperature || m.kind == auto) {
			continue
		}
		list, titles = append(list, m), append(titles, m.title)
	}
	header(b, titles...)
	for _, s := range t.settings {
		cells := []string{s.title}
		base := nll.values(r.pick(s.name, find(t.methods, reference), tempered), tempered)
		for _, m := range list {
			trials := r.pick(s.name, m, tempered)
			if len(trials) == 0 {
				cells = append(cells, "–")
				continue
			}
			a, _ := student.Interval(listOf(accuracy, trials, tempered), 0)
			e, _ := student.Interval(listOf(ece, trials, tempered), 0)
			l, _ := student.Interval(listOf(nll, trials, tempered), 0)
			text := fmt.Sprintf("%.1f / %.2f / %.4f", a, e, l)
			if uint64(len(trials)) < t.seeds {
				text += fmt.Sprintf(" (%d)", len(trials))
			}
			cells = append(cells, nll.mark(text, less(nll.values(trials, tempered), base)))
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString("\n")
}

func listOf(c measurement, trials map[uint64]trial, tempered bool) []float64 {
	return list(c.values(trials, tempered))
}
