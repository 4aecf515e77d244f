package diagram

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/plot"
)

var (
	ink   = color.RGBA{0x1f, 0x4e, 0x79, 0xff}
	wrong = color.RGBA{0xc0, 0x50, 0x2d, 0xff}
	faint = color.RGBA{0x99, 0x99, 0x99, 0xff}
)

// Report is the evaluation of some rows.
type Report struct {
	Title   string
	Metrics metric.Report
	Rows    metric.Rows
}

// Evaluation are the panels of a report: reliability, risk against coverage, confidences.
func Evaluation(r Report, opt metric.Options) ([]*plot.Panel, error) {
	top, err := topLabels(r.Rows, opt.CSF)
	if err != nil {
		return nil, fmt.Errorf("plot %s: %w", r.Title, err)
	}
	bins := metric.EqualWidth(top.c, top.a, top.w, opt.Bins)
	return []*plot.Panel{reliability(r, bins), risk(r, metric.SortWeighted(top.csf, top.a, top.w), opt.CSF),
		histogram(bins)}, nil
}

func newPanel(title, x, y string) *plot.Panel {
	return &plot.Panel{Title: title, X: plot.Axis{Label: x, Max: 1}, Y: plot.Axis{Label: y, Max: 1}, Grid: true}
}

// reliability has the accuracy of the bins that have rows over their mean confidence, with intervals and numbers of
// rows.
func reliability(r Report, bins []metric.Bin) *plot.Panel {
	p := newPanel(fmt.Sprintf("%s\nn %d, ECE %s, expected if calibrated %s", Short(r.Title), r.Metrics.N,
		decimals(r.Metrics.ECE), decimals(r.Metrics.ECENull)), "mean confidence",
		"accuracy, 95 % interval, number of rows")
	p.Marks = append(p.Marks, plot.Line{Points: []plot.Point{{X: 0, Y: 0}, {X: 1, Y: 1}}, Color: faint, Dashed: true})
	var points []plot.Point
	for _, b := range metric.Reliability(bins, metric.Wilson) {
		if !(b.W > 0) {
			continue
		}
		points = append(points, plot.Point{X: b.Conf, Y: b.Acc})
		p.Marks = append(p.Marks, plot.Whisker{X: b.Conf, Lo: b.AccLo, Hi: b.AccHi, Color: ink},
			plot.Text{At: plot.Point{X: b.Conf, Y: b.AccHi}, Text: fmt.Sprint(b.N)})
	}
	p.Marks = append(p.Marks, plot.Line{Points: points, Color: ink}, plot.Dots{Points: points, Color: ink})
	return p
}

func risk(r Report, s metric.Sorted, csf string) *plot.Panel {
	p := newPanel("Risk-coverage\nAURC "+decimals(r.Metrics.AURC), "coverage, by "+csf, "share of wrong rows")
	curve := riskCoverage(s)
	const least = 0.01
	p.Y.Max = least
	for _, at := range curve {
		p.Y.Max = max(p.Y.Max, at.Y)
	}
	p.Marks = append(p.Marks, plot.Line{Points: curve, Color: wrong, Width: 1.5})
	return p
}

// histogram stacks the wrong rows of every bin on the right ones.
func histogram(bins []metric.Bin) *plot.Panel {
	p := newPanel("Confidences\nright, and wrong above", "confidence", "rows")
	p.Grid, p.Y.Whole = false, true
	if slices.ContainsFunc(bins, func(b metric.Bin) bool { return b.W != float64(b.N) }) {
		p.Y.Label = "weight of the rows"
	}
	m := float64(len(bins))
	for i, b := range bins {
		lo, hi := float64(i)/m, float64(i+1)/m
		p.Y.Max = max(p.Y.Max, b.W)
		for _, part := range []struct {
			from, to float64
			fill     color.RGBA
		}{{0, b.SumA, ink}, {b.SumA, b.W, wrong}} {
			if part.from != part.to {
				p.Marks = append(p.Marks, plot.Bar{From: plot.Point{X: lo, Y: part.from},
					To: plot.Point{X: hi, Y: part.to}, Color: part.fill})
			}
		}
	}
	return p
}

// Short keeps the end of a title that is wider than a panel: files differ there.
func Short(s string) string {
	const most = 46
	if r := []rune(s); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return s
}

func decimals(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}
