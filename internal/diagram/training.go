package diagram

import (
	"image/color"

	"github.com/plumbline/plumbline/internal/plot"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// series is a line of a panel with what it is called; "" where it is the only one.
type series struct {
	name  string
	value func(recipe.EpochReport) float64
}

// Training are the panels of a training: loss and NLL, accuracy and confidence, and what was steered.
func Training(name string, r *recipe.Report) []*plot.Panel {
	loss := epochs(Short(name)+": loss", "training loss, validation NLL", r,
		series{"training loss", func(e recipe.EpochReport) float64 { return e.Loss }},
		series{"validation NLL", func(e recipe.EpochReport) float64 { return e.Valid.NLL }})
	loss.Top = true // the lines fall; those of accuracy rise
	right := epochs("validation rows", "accuracy, mean confidence", r,
		series{"accuracy", func(e recipe.EpochReport) float64 { return e.Valid.Accuracy }},
		series{"confidence", func(e recipe.EpochReport) float64 { return e.Valid.Confidence }})
	steered := epochs("learning rate", "learning rate", r,
		series{"", func(e recipe.EpochReport) float64 { return e.LR }})
	if r.Config.MaCCal != nil {
		steered = epochs("kept weights", "q", r, series{"", func(e recipe.EpochReport) float64 { return e.Q }})
	}
	return []*plot.Panel{loss, right, steered}
}

// epochs is a panel with a line for each series over the epochs.
func epochs(title, y string, r *recipe.Report, lines ...series) *plot.Panel {
	const least = 1e-3
	p := newPanel(title, "epoch", y)
	p.X.Min, p.X.Max, p.X.Whole, p.Y.Max = 1, max(2, float64(len(r.Epochs))), true, least
	for i, s := range lines {
		line := plot.Line{Color: []color.RGBA{ink, wrong}[min(i, 1)], Width: 1.5}
		for _, e := range r.Epochs {
			at := plot.Point{X: float64(e.Epoch), Y: s.value(e)}
			p.Y.Min, p.Y.Max = min(p.Y.Min, at.Y), max(p.Y.Max, at.Y)
			line.Points = append(line.Points, at)
		}
		p.Marks = append(p.Marks, line)
		if s.name != "" {
			p.Legend = append(p.Legend, plot.Entry{Name: s.name, Color: line.Color})
		}
	}
	return p
}
