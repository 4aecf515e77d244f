package main

import (
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/plumbline/plumbline/trainer/recipe"
)

// curves draws a row of panels for each training as PNG: loss and NLL, accuracy and confidence, and what was steered.
func (r *trainResult) curves(w io.Writer) error {
	var page [][]*plot.Plot
	add := func(name string, report *recipe.Report) error {
		row, err := trainPanels(name, report)
		page = append(page, row)
		return err
	}
	if r.Training != nil {
		if err := add(r.Recipe, r.Training); err != nil {
			return err
		}
	}
	if r.Auto != nil {
		for _, s := range r.Auto.Tried {
			if s.Report == nil {
				continue
			}
			if err := add(s.Name, s.Report); err != nil {
				return err
			}
		}
	}
	_, err := drawPage(page, ".png").WriteTo(w)
	return err
}

func trainPanels(name string, r *recipe.Report) ([]*plot.Plot, error) {
	of := func(f func(recipe.EpochReport) float64) plotter.XYs {
		var xy plotter.XYs
		for _, e := range r.Epochs {
			xy = append(xy, plotter.XY{X: float64(e.Epoch), Y: f(e)})
		}
		return xy
	}
	loss := newPanel(shortTitle(name)+": loss", "epoch", "training loss, validation NLL")
	if err := addLines(loss, []string{"training loss", "validation NLL"}, of(func(e recipe.EpochReport) float64 { return e.Loss }),
		of(func(e recipe.EpochReport) float64 { return e.Valid.NLL })); err != nil {
		return nil, err
	}
	loss.Legend.Top = true // the lines fall; those of accuracy rise
	right := newPanel("validation rows", "epoch", "accuracy, mean confidence")
	if err := addLines(right, []string{"accuracy", "confidence"}, of(func(e recipe.EpochReport) float64 { return e.Valid.Accuracy }),
		of(func(e recipe.EpochReport) float64 { return e.Valid.Confidence })); err != nil {
		return nil, err
	}
	steered := newPanel("learning rate", "epoch", "learning rate")
	value := func(e recipe.EpochReport) float64 { return e.LR }
	if r.Config.MaCCal != nil {
		steered = newPanel("kept weights", "epoch", "q")
		value = func(e recipe.EpochReport) float64 { return e.Q }
	}
	return []*plot.Plot{loss, right, steered}, addLines(steered, []string{""}, of(value))
}

// addLines adds a line a name, with a legend where there are several.
func addLines(p *plot.Plot, names []string, lines ...plotter.XYs) error {
	p.Add(plotter.NewGrid())
	for i, xy := range lines {
		if len(xy) == 0 {
			continue
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return err
		}
		if line.Color, line.Width = plotInk, vg.Points(1.5); i > 0 {
			line.Color = plotWrong
		}
		p.Add(line)
		if names[i] != "" {
			p.Legend.Add(names[i], line)
		}
		p.X.Min, p.X.Max = 1, max(2, float64(len(xy)))
	}
	p.Y.Min, p.Y.Max = min(p.Y.Min, 0), max(p.Y.Max, p.Y.Min+1e-3)
	return nil
}
