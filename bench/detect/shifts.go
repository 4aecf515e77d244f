package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/internal/section"
)

// scored are rows of one model: confidence and whether it was right.
type scored struct {
	c     []float64
	right []bool
}

func (s scored) from(a, b int) scored { return scored{s.c[a:b], s.right[a:b]} }

func (s scored) plus(o scored) scored {
	return scored{append(slices.Clip(s.c), o.c...), append(slices.Clip(s.right), o.right...)}
}

func (s scored) accuracy() float64 {
	var right float64
	for _, r := range s.right {
		if r {
			right++
		}
	}
	return right / float64(len(s.right))
}

// shifted is a deployment: a labelled reference, labelled rows after it, and then windows without labels. The labels of
// a window come before the next one if they follow each other in time; else every window is a future of its own.
type shifted struct {
	name      string
	reference scored
	past      scored
	windows   []namedRows
	inTime    bool
	held      bool // nothing was chosen on it
}

type namedRows struct {
	name string
	scored
}

// pastBlock is the part of the reference's rows that test the estimates at a time (operators/model/drift).
const pastBlock = 10

// rangeRow is what the range says of one window.
type rangeRow struct {
	name                            string
	held                            bool
	truth, confidence, shift, width float64
	unlabelled.Range
	answered bool // there is a range
}

func (r rangeRow) covered() bool { return r.answered && r.Lo <= r.truth && r.truth <= r.Hi }

// shiftBins are the bins of the confidence in a deployment (operators/model/stage).
const shiftBins = 60

func histogramOf(s scored, keep func(i int) bool) []float64 {
	h := make([]float64, shiftBins)
	for i, c := range s.c {
		if keep(i) {
			h[min(shiftBins-1, int(c*shiftBins))]++
		}
	}
	return h
}

// estimatesOf are both estimates of rows as if they had no labels.
func estimatesOf(ref scored, calibrate func(float64) float64, now scored) ([]unlabelled.Estimate, error) {
	var g acc.Grid
	for _, c := range now.c {
		if err := g.Add(c, 1, false); err != nil {
			return nil, err
		}
	}
	est := []unlabelled.Estimate{unlabelled.ConfidenceBased(g.Groups(), calibrate, bins)}
	right := histogramOf(ref, func(i int) bool { return ref.right[i] })
	wrong := histogramOf(ref, func(i int) bool { return !ref.right[i] })
	all := histogramOf(now, func(int) bool { return true })
	if e, err := unlabelled.CorrectnessShift(right, wrong, all); err == nil {
		est = append(est, e)
	}
	return est, nil
}

// ranges estimates every window of a deployment.
func (d shifted) ranges() ([]rangeRow, error) {
	iso, _, err := calibrator.FitIsotonicConfidence(d.reference.c, d.reference.right, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	labelled := d.past
	var out []rangeRow
	for _, w := range d.windows {
		past, err := d.blocks(labelled, iso.Map)
		if err != nil {
			return nil, err
		}
		est, err := estimatesOf(d.reference, iso.Map, w.scored)
		if err != nil {
			return nil, err
		}
		row := rangeRow{name: d.name + ", " + w.name, held: d.held, truth: w.accuracy(), confidence: est[0].Accuracy,
			shift: math.NaN()}
		if len(est) > 1 {
			row.answered, row.shift = true, est[1].Accuracy
			row.Range = unlabelled.RangeOf(past, d.stale(past), est...)
			row.width = row.Hi - row.Lo
		}
		out = append(out, row)
		if d.inTime {
			labelled = labelled.plus(w.scored)
		}
	}
	return out, nil
}

func (d shifted) stale(past []unlabelled.Past) bool {
	rows := float64(len(d.reference.c))
	return unlabelled.Stale(past, math.Round(d.reference.accuracy()*rows), rows)
}

// blocks are the latest 20 blocks of labelled rows.
func (d shifted) blocks(labelled scored, calibrate func(float64) float64) ([]unlabelled.Past, error) {
	size := max(100, len(d.reference.c)/pastBlock)
	var out []unlabelled.Past
	for from := 0; from+size <= len(labelled.c); from += size {
		block := labelled.from(from, from+size)
		est, err := estimatesOf(d.reference, calibrate, block)
		if err != nil {
			return nil, err
		}
		if len(est) > 1 {
			out = append(out, unlabelled.PastOf(math.Round(block.accuracy()*float64(size)), float64(size), est...))
		}
	}
	return out[max(0, len(out)-20):], nil
}

// subsets are kinds of CIFAR-10 classes that a deployment may turn to.
var subsets = []struct {
	name    string
	classes []int32
}{
	{"animals", []int32{2, 3, 4, 5, 6, 7}},
	{"vehicles", []int32{0, 1, 8, 9}},
	{"cats and dogs", []int32{3, 5}},
}

// image is a deployment of one network: reference and past on clean rows, then windows of other rows.
type image struct {
	name, file, clean string
	others            []string // arrays of the same rows under a corruption
	held              bool
}

func (m image) deployment(folder string) (shifted, error) {
	arrays, err := npy.ReadArchive(filepath.Join(folder, m.file+".npz"))
	if err != nil {
		return shifted{}, err
	}
	labels := arrays["test_labels"].Int
	ys := make([]int32, len(labels))
	copy(ys, labels)
	var third [3][]int
	for i := range ys {
		third[i%3] = append(third[i%3], i)
	}
	z := arrays[m.clean].F32
	cal, _, err := calibrator.FitTemperature(calibrator.NewData(z, classes, ys, nil), calibrator.Options{})
	if err != nil {
		return shifted{}, fmt.Errorf("%s: %w", m.name, err)
	}
	score := func(z []float32, rows []int) (s scored) {
		for _, i := range rows {
			c, top := confidence(z[i*classes:(i+1)*classes], cal.T())
			s.c, s.right = append(s.c, c), append(s.right, top == int(ys[i]))
		}
		return s
	}
	d := shifted{name: m.name, reference: score(z, third[0]), past: score(z, third[1]), held: m.held}
	for _, s := range subsets {
		var rows []int
		for _, i := range third[2] {
			if slices.Contains(s.classes, ys[i]) {
				rows = append(rows, i)
			}
		}
		d.windows = append(d.windows, namedRows{s.name, score(z, rows)})
	}
	for _, name := range m.others {
		short := strings.TrimPrefix(name, m.clean+"_")
		d.windows = append(d.windows, namedRows{short, score(arrays[name].F32, third[2])})
	}
	return d, nil
}

// deployments are all of them. Of the networks half are held out, as are half of the streams.
func deployments(o options) ([]shifted, error) {
	images := []image{
		{"JPEG ResNet-20", jpeg, "resnet20", []string{"resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3",
			"resnet20_contrast_s3", "resnet20_gauss_blur_s3", "resnet20_gauss_blur_s5"}, false},
		{"JPEG ResNet-56", jpeg, "resnet56", nil, false},
	}
	const zoo = "c10_chenyaofo19_logits"
	arrays, err := npy.ReadArchive(filepath.Join(o.data, zoo+".npz"))
	if err != nil {
		return nil, err
	}
	var nets []string
	for name, a := range arrays {
		if a.F32 != nil {
			nets = append(nets, name)
		}
	}
	slices.Sort(nets)
	for i, name := range nets {
		if i%3 == 0 {
			images = append(images, image{"CIFAR-10 " + name, zoo, name, nil, i%2 == 1})
		}
	}
	var out []shifted
	for _, m := range images {
		d, err := m.deployment(o.data)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	streams, err := frozen(o.out)
	if err != nil {
		return nil, err
	}
	heldStreams := []string{"gas sensors", "forecasts, NBA", "forecasts, NHL"}
	for i := range streams {
		out = append(out, inTime(&streams[i], slices.Contains(heldStreams, streams[i].name)))
	}
	return out, nil
}

// inTime cuts a stream: a quarter is the reference, an eighth the labelled past, five more windows.
func inTime(s *stream, held bool) shifted {
	var all scored
	for _, r := range s.rows(0, nil) {
		all.c, all.right = append(all.c, r.c), append(all.right, r.right)
	}
	n := len(all.c) / 8
	d := shifted{name: s.name, reference: all.from(0, 2*n), past: all.from(2*n, 3*n), inTime: true, held: held}
	for w := range 5 {
		d.windows = append(d.windows, namedRows{fmt.Sprintf("window %d", w+1), all.from((3+w)*n, (4+w)*n)})
	}
	return d
}

// shiftTable says what the range says under real shifts.
func shiftTable(o options) error {
	list, err := deployments(o)
	if err != nil {
		return err
	}
	var all []rangeRow
	for _, d := range list {
		rows, err := d.ranges()
		if err != nil {
			return err
		}
		all = append(all, rows...)
	}
	var b strings.Builder
	rangeBars(&b, all)
	var rows [][]string
	for _, r := range all {
		text, verdict := "none: too few wrong rows in the reference", "not answered"
		if r.answered {
			text = fmt.Sprintf("%.1f..%.1f", 100*r.Lo, 100*r.Hi)
			if r.Known {
				verdict = "holds"
				if !r.covered() {
					verdict = "**misses**"
				}
			} else if r.covered() {
				verdict = "cannot be known (holds)"
			} else {
				verdict = "cannot be known (misses)"
			}
		}
		name := r.name
		if r.held {
			name += " (held out)"
		}
		shift := ""
		if !math.IsNaN(r.shift) {
			shift = percent(r.shift)
		}
		rows = append(rows, []string{name, percent(r.truth), percent(r.confidence), shift, text, verdict})
	}
	table(&b, "Every shift:", []string{"rows without labels", "true", "confidence-based", "correctness shift", "range",
		"what the page says"}, rows)
	fmt.Print(b.String())
	if o.docs == "" {
		return nil
	}
	return section.Replace(o.docs, "shifts", b.String())
}

// rangeBars are the shares of ranges that hold the truth: of all, and of those that are stated.
func rangeBars(b *strings.Builder, all []rangeRow) {
	var rows [][]string
	for _, part := range []struct {
		name string
		in   func(rangeRow) bool
	}{
		{"all", func(rangeRow) bool { return true }},
		{"held out", func(r rangeRow) bool { return r.held }},
	} {
		var answered, covered, known, stated int
		var widths, statedWidths []float64
		n := 0
		for _, r := range all {
			if !part.in(r) {
				continue
			}
			n++
			if !r.answered {
				continue
			}
			answered++
			widths = append(widths, r.width)
			if r.covered() {
				covered++
			}
			if r.Known {
				known++
				statedWidths = append(statedWidths, r.width)
				if r.covered() {
					stated++
				}
			}
		}
		rows = append(rows, []string{part.name, fmt.Sprint(n), fmt.Sprintf("%d of %d", covered, answered),
			fmt.Sprintf("%.3f", middleOf(widths)), fmt.Sprintf("%d of %d", stated, known),
			fmt.Sprintf("%.3f", middleOf(statedWidths)), fmt.Sprint(n - known)})
	}
	table(b, fmt.Sprintf("**Ranges before labels**: between the confidence-based estimate and that of correctness "+
		"shift, widened by what the last 20 blocks of labels needed. Bar: 90 %% hold the truth at a median width of "+
		"at most %.2f, or the page says \"cannot be known without labels\".", unlabelled.KnownWidth),
		[]string{"shifts", "number", "all ranges that hold the truth", "median width", "stated ranges that hold it",
			"median width of these", "\"cannot be known\""}, rows)
}

func middleOf(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	return x[len(x)/2]
}
