package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/bench/student"
)

const reference = "temperature"

// smallModel is refitted on few rows, to see who overfits.
const smallModel = "c10_chenyaofo19_logits/resnet20"

var (
	smallSizes   = []int{200, 500, 1000, 2000}
	smallMethods = []string{
		"identity", "temperature", "ensemble_temperature", "class_temperature", "parameterised_temperature", "vector",
		"matrix", "dirichlet",
		"intra_order_preserving", "platt", "isotonic", "histogram", "scaling_binning", "spline",
	}
)

// column is a measure of the tables, with the factor that it is shown at.
type column struct {
	title, format string
	scale         float64
	of            func(score) float64
}

var columns = []column{
	{"ECE (%, 15 bins, top label)", "%.2f", 100, func(s score) float64 { return s.ECE }},
	{"Class-wise ECE (%, 15 bins)", "%.3f", 100, func(s score) float64 { return s.CWECE }},
	{"NLL (nats)", "%.4f", 1, func(s score) float64 { return s.NLL }},
	{"Accuracy (%)", "%.2f", 100, func(s score) float64 { return s.Accuracy }},
}

// table is the scores, and which models a group has.
type table struct {
	scores map[key]score
	groups map[string][]string
}

func newTable(scores map[key]score) table {
	t := table{scores, map[string][]string{}}
	for _, g := range groups {
		seen := map[string]bool{}
		for k := range scores {
			if strings.HasPrefix(k.Model, g.file+"/") && (g.array == "" || k.Model == g.file+"/"+g.array) &&
				!seen[k.Model] {
				seen[k.Model] = true
				t.groups[g.title] = append(t.groups[g.title], k.Model)
			}
		}
	}
	return t
}

// bySplit returns a measure of every split, the mean over the models of the group, less that of another method if one
// is named; a split without a score of every model is left out.
func (t table) bySplit(models []string, method, less string, rows int, of func(score) float64) []float64 {
	var out []float64
	for split := range splits {
		var sum float64
		count := 0
		for _, m := range models {
			s, ok := t.scores[key{m, split, method, rows}]
			if !ok || s.Error != "" {
				continue
			}
			v := of(s)
			if less != "" {
				other, ok := t.scores[key{m, split, less, rows}]
				if !ok || other.Error != "" {
					continue
				}
				v -= of(other)
			}
			sum, count = sum+v, count+1
		}
		if count == len(models) && count > 0 {
			out = append(out, sum/float64(count))
		}
	}
	return out
}

// cell shows a measure and, for all but the reference, its difference from the reference with the interval: bold where
// better beyond it, in italics where worse beyond it, neither where the difference rounds to nothing.
func (t table) cell(models []string, method string, c column) string {
	x := t.bySplit(models, method, "", 0, c.of)
	if len(x) == 0 {
		return "–"
	}
	mean, own := student.Interval(x, 1)
	value := fmt.Sprintf(c.format, mean*c.scale)
	if method == reference {
		return fmt.Sprintf("%s ±"+c.format, value, own*c.scale)
	}
	diff, h := student.Interval(t.bySplit(models, method, reference, 0, c.of), 1)
	text := fmt.Sprintf("%s (%+"+c.format[1:]+" ±"+c.format+")", value, diff*c.scale, h*c.scale)
	good := diff < 0
	if strings.HasPrefix(c.title, "Accuracy") {
		good = diff > 0
	}
	switch {
	case math.Abs(diff) <= h || math.IsNaN(h) || strings.Trim(fmt.Sprintf(c.format, diff*c.scale), "-0.") == "":
		return text
	case good:
		return "**" + text + "**"
	}
	return "*" + text + "*"
}

func render(scores map[key]score) string {
	t := newTable(scores)
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "%s:\n\n| method |", c.title)
		for _, g := range groups {
			fmt.Fprintf(&b, " %s |", g.title)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(groups)) + "\n")
		for _, name := range names() {
			fmt.Fprintf(&b, "| %s |", name)
			for _, g := range groups {
				fmt.Fprintf(&b, " %s |", t.cell(t.groups[g.title], name, c))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	t.small(&b)
	t.metaCal(&b)
	return b.String()
}

// small is the NLL by the number of fitted rows.
func (t table) small(b *strings.Builder) {
	fmt.Fprintf(b, "NLL of the tested half by the number of rows that are fitted, CIFAR-10 ResNet-20 (%s):\n\n| "+
		"method |", smallModel)
	sizes := append(append([]int{}, smallSizes...), 0)
	for _, n := range sizes {
		if n == 0 {
			n = 5000
		}
		fmt.Fprintf(b, " %d |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(sizes)) + "\n")
	for _, name := range smallMethods {
		fmt.Fprintf(b, "| %s |", name)
		for _, n := range sizes {
			mean, _ := student.Interval(t.bySplit([]string{smallModel}, name, "", n, columns[2].of), 1)
			fmt.Fprintf(b, " %.4f |", mean)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// metaCal is what the thresholds of Meta-Cal reach of what they are told.
func (t table) metaCal(b *strings.Builder) {
	b.WriteString("Meta-Cal's constraints on the tested half (%; mean and range over splits and nets):\n\n")
	b.WriteString("| rows | method | target | reached | rows kept | accuracy on them |\n|---|---|---|---|---|---|\n")
	for _, g := range groups {
		for _, name := range []string{"metacal_miscoverage", "metacal_accuracy"} {
			var n, target, reached, kept, accuracy float64
			lo, hi := math.Inf(1), math.Inf(-1)
			for _, m := range t.groups[g.title] {
				for split := range splits {
					s, ok := t.scores[key{m, split, name, 0}]
					if !ok || s.Error != "" || s.Target == 0 {
						continue
					}
					r := s.Missed
					if name == "metacal_accuracy" {
						r = s.KeptAccuracy
					}
					n, target, reached, kept, accuracy = n+1, target+s.Target, reached+r, kept+s.Kept,
						accuracy+s.KeptAccuracy
					lo, hi = min(lo, r), max(hi, r)
				}
			}
			if n > 0 {
				fmt.Fprintf(b, "| %s | %s | %.1f | %.1f (%.1f..%.1f) | %.1f | %.1f |\n",
					g.title, name, 100*target/n, 100*reached/n, 100*lo, 100*hi, 100*kept/n, 100*accuracy/n)
			}
		}
	}
}
