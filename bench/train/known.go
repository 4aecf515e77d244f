package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/bench/queue"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/section"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// knownSet is rows of which the classes from known on are left out of all training, and are unknown rows to the heads.
type knownSet struct {
	name  string
	known int
	// from has the rows that train; test, where it is another set, those that validate and measure.
	from, test *data.Set
}

const (
	knownSeeds = 3
	knownTrain = 4000
	knownValid = 1000
)

// knownSets are the sets of the methods' table.
func knownSets(folder string) ([]knownSet, error) {
	s, err := load(folder)
	if err != nil {
		return nil, err
	}
	out := []knownSet{
		{name: "CIFAR-10", known: 8, from: s.sets["train_features"], test: s.sets["test_features"]},
		{name: "contrast_s3", known: 8, from: s.sets["contrast_s3_f"]},
	}
	for _, t := range []struct{ name, file string }{
		{"gas", "drift_gas_sensor_b1-6_8_9.npz"}, {"INSECTS", "drift_insects_gradual_bal.npz"},
	} {
		rows, err := measured(filepath.Join(folder, t.file))
		if err != nil {
			return nil, err
		}
		out = append(out, knownSet{name: t.name, known: rows.K - 1, from: rows})
	}
	return out, nil
}

// draw makes the rows of a seed.
func (k knownSet) draw(seed uint64) (in recipe.Input, test, unknown *data.Set) {
	divide := func(s *data.Set) (known, other *data.Set) {
		var a, b []int32
		for _, r := range shuffled(s.N(), seed) {
			if int(s.Y[r]) < k.known {
				a = append(a, r)
			} else {
				b = append(b, r)
			}
		}
		known, other = s.Select(a), s.Select(b)
		known.K = k.known
		return known, other
	}
	known, other := divide(k.from)
	train := min(knownTrain, known.N()/2)
	in.Train = known.Select(data.Rows(train))
	rest := known.Select(data.Rows(known.N())[train:])
	if k.test != nil {
		rest, other = divide(k.test)
	}
	valid := min(knownValid, rest.N()/3)
	in.Valid = rest.Select(data.Rows(valid))
	return in, rest.Select(data.Rows(rest.N())[valid:]), other
}

// knownMethods are the rows of the table, each a grid of which validation NLL takes one.
func knownMethods() []method {
	at := func(c recipe.Config) (grid []recipe.Config) {
		for _, lr := range rates2 {
			c.LR = lr
			grid = append(grid, c)
		}
		return grid
	}
	linear := recipe.CrossEntropy()
	linear.Head = recipe.HeadLinear
	return []method{
		{name: "ce", title: "CE, linear", grid: at(linear)},
		{name: "tst", title: "TST", grid: at(recipe.TST())},
		{name: "vtst", title: "V-TST", grid: at(recipe.VTST())},
		{name: "balcal", title: "BalCAL", grid: at(recipe.BalCAL())},
		{name: "plp", title: "PLP", grid: at(recipe.PLP())},
		{name: "maccal_printed", title: "MaC-Cal printed", grid: []recipe.Config{recipe.MaCCalPrinted()}},
		{name: "maccal", title: "MaC-Cal stable", grid: []recipe.Config{recipe.MaCCalStable()}},
	}
}

// knownTrial is a method on a set with a seed.
type knownTrial struct {
	set    knownSet
	method method
	seed   uint64
	// plain and tempered have the measures in the order of knownColumns.
	plain, tempered []float64
	err             error
}

// knownColumns are the table's; lower is better but for accuracy and AUROC.
var knownColumns = []string{"accuracy", "ECE", "AECE", "MCE", "NLL", "AUROC", "FPR95"}

func (k knownTrial) run() knownTrial {
	in, test, unknown := k.set.draw(k.seed)
	var best *head.Head
	lowest := 0.
	for _, c := range k.method.grid {
		c.Seed = k.seed
		h, _, err := recipe.Run(context.Background(), c, in, backend.Go{GEMM: products()}, nil)
		if err != nil {
			k.err = err
			return k
		}
		if v := on(h, in.Valid, 1).NLL; best == nil || v < lowest {
			best, lowest = h, v
		}
	}
	t, _, err := fitTemperature(best, in.Valid)
	if err != nil {
		k.err = err
		return k
	}
	k.plain = knownRates(best, test, unknown)
	k.tempered = knownRates(best.Tempered(t.T()), test, unknown)
	return k
}

func knownRates(h *head.Head, test, unknown *data.Set) []float64 {
	o := on(h, test, 1)
	var top []float64
	var known []bool
	for _, s := range []*data.Set{test, unknown} {
		for row := range slices.Chunk(logitsOf(h, s), h.K()) {
			top, known = append(top, topProbability(row)), append(known, s == test)
		}
	}
	sorted := metric.SortWeighted(top, known, nil)
	return []float64{100 * o.Accuracy, 100 * o.ECE, 100 * o.ACE, 100 * o.MCE, o.NLL, 100 * metric.AUROC(sorted),
		100 * metric.FPR95(sorted)}
}

func topProbability(z []float32) float64 {
	top, sum := slices.Max(z), 0.
	for _, v := range z {
		sum += math.Exp(float64(v) - float64(top))
	}
	return 1 / sum
}

// knownMeans are the means over the seeds, by set and method; + T after the name is with a temperature.
type knownMeans map[string][]float64

// methodsSet prints the table of the classifier-level methods.
func (o options) methodsSet() error {
	sets, err := knownSets(o.folder)
	if err != nil {
		return err
	}
	var todo []knownTrial
	for _, s := range sets {
		for _, m := range knownMethods() {
			for seed := range uint64(knownSeeds) {
				todo = append(todo, knownTrial{set: s, method: m, seed: seed + 1})
			}
		}
	}
	means := knownMeans{}
	add := func(name string, v []float64) {
		if means[name] == nil {
			means[name] = make([]float64, len(v))
		}
		for i, x := range v {
			means[name][i] += x / knownSeeds
		}
	}
	for k := range queue.Results(todo, o.jobs, knownTrial.run) {
		if k.err != nil {
			return fmt.Errorf("%s, %s: %w", k.set.name, k.method.name, k.err)
		}
		add(k.set.name+"/"+k.method.name, k.plain)
		add(k.set.name+"/"+k.method.name+" + T", k.tempered)
	}
	text := means.text(sets)
	fmt.Print(text)
	if os.Getenv("PLUMBLINE_DOCS") == "" {
		return nil
	}
	return section.Replace("bench/results/train-methods.md", "train-methods", text)
}

func (m knownMeans) text(sets []knownSet) string {
	var b strings.Builder
	m.claims(&b, sets)
	for _, s := range sets {
		fmt.Fprintf(&b, "%s, %d known classes:\n\n", s.name, s.known)
		header(&b, append([]string{"method"}, knownColumns...)...)
		for _, tempered := range []string{"", " + T"} {
			for _, method := range knownMethods() {
				cells := []string{method.title + tempered}
				for i, v := range m[s.name+"/"+method.name+tempered] {
					format := "%.2f"
					if knownColumns[i] == "NLL" {
						format = "%.4f"
					}
					cells = append(cells, fmt.Sprintf(format, v))
				}
				b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// claims says where the order of methods that a paper finds in its own networks shows here.
func (m knownMeans) claims(b *strings.Builder, sets []knownSet) {
	const accuracy, ece, aece, auroc = 0, 1, 2, 5
	header(b, "order", "shows on", "does not show on")
	line := func(title string, column int, better string, worse ...string) {
		var yes, no []string
		for _, s := range sets {
			a, holds := m[s.name+"/"+better][column], true
			for _, w := range worse {
				v := m[s.name+"/"+w][column]
				if column == accuracy || column == auroc {
					a, v = -a, -v
				}
				holds = holds && a < v
				a = m[s.name+"/"+better][column]
			}
			if holds {
				yes = append(yes, s.name)
			} else {
				no = append(no, s.name)
			}
		}
		cell := func(list []string) string {
			if len(list) == 0 {
				return "none"
			}
			return strings.Join(list, ", ")
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", title, cell(yes), cell(no))
	}
	others := []string{"ce", "tst", "vtst", "balcal", "plp"}
	line("TST: ECE below CE's", ece, "tst", "ce")
	line("V-TST: ECE below TST's", ece, "vtst", "tst")
	line("BalCAL: ECE below CE's", ece, "balcal", "ce")
	line("BalCAL: ECE below TST's and V-TST's", ece, "balcal", "tst", "vtst")
	line("PLP: ECE after a temperature below CE's", ece, "plp + T", "ce + T")
	line("MaC-Cal printed: the lowest ECE", ece, "maccal_printed", others...)
	line("MaC-Cal stable: the lowest ECE", ece, "maccal", others...)
	line("MaC-Cal stable: the lowest AECE", aece, "maccal", others...)
	line("MaC-Cal stable: the highest AUROC of known rows", auroc, "maccal", others...)
	line("MaC-Cal stable: accuracy not below CE's", accuracy, "maccal", "ce")
	b.WriteString("\n")
}
