//go:build integration

package integration

import (
	"image/color"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	soakInk   = color.RGBA{0x1f, 0x4e, 0x79, 0xff}
	soakHeap  = color.RGBA{0xc0, 0x50, 0x2d, 0xff}
	soakShade = color.RGBA{0xf3, 0xe6, 0xc8, 0xff}
)

// soakLine is one curve of a panel.
type soakLine struct {
	name string
	of   func(soakSample) float64
	ink  color.Color
}

// drawSoak draws four panels over the same minutes; the burst is shaded.
func drawSoak(t *testing.T, file string, samples []soakSample, from, span time.Duration) {
	t.Helper()
	panels := []struct {
		label string
		lines []soakLine
	}{
		{"rows and labels a second", []soakLine{{"", func(x soakSample) float64 { return x.rate }, soakInk}}},
		{"lag (rows and labels)", []soakLine{{"", func(x soakSample) float64 { return x.lag }, soakInk}}},
		{"memory (MB)", []soakLine{{"resident", func(x soakSample) float64 { return x.rss }, soakInk}, {"heap in use", func(x soakSample) float64 { return x.heap }, soakHeap}}},
		{"goroutines", []soakLine{{"", func(x soakSample) float64 { return x.goroutines }, soakInk}}},
	}
	var plots [][]*plot.Plot
	for i, panel := range panels {
		p := plot.New()
		p.Y.Label.Text = panel.label
		if i == len(panels)-1 {
			p.X.Label.Text = "minutes"
		}
		most := 0.0
		for _, l := range panel.lines {
			most = max(most, quantile(samples, l.of, 1))
		}
		p.Y.Min, p.Y.Max = 0, 1.1*most+1
		shade, err := plotter.NewPolygon(plotter.XYs{{X: from.Minutes()}, {X: from.Minutes(), Y: p.Y.Max}, {X: (from + span).Minutes(), Y: p.Y.Max}, {X: (from + span).Minutes()}})
		if err != nil {
			t.Fatal(err)
		}
		shade.Color, shade.LineStyle.Width = soakShade, 0
		p.Add(shade)
		for _, l := range panel.lines {
			xys := make(plotter.XYs, len(samples))
			for i, x := range samples {
				xys[i] = plotter.XY{X: x.at / 60, Y: l.of(x)}
			}
			line, err := plotter.NewLine(xys)
			if err != nil {
				t.Fatal(err)
			}
			line.Color = l.ink
			p.Add(line)
			if l.name != "" {
				p.Legend.Add(l.name, line)
			}
		}
		p.Y.Min, p.Y.Max = 0, 1.1*most+1
		plots = append(plots, []*plot.Plot{p})
	}
	writeSoak(t, file, plots)
}

func writeSoak(t *testing.T, file string, plots [][]*plot.Plot) {
	t.Helper()
	const pad = 3 * vg.Millimeter
	w, h := 18*vg.Centimeter, vg.Length(len(plots))*5*vg.Centimeter
	page := vgsvg.NewWith(vgsvg.UseWH(w, h))
	canvas := draw.New(page)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadX: pad, PadY: pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: pad}
	for i, row := range plot.Align(plots, tiles, canvas) {
		plots[i][0].Draw(row[0])
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := page.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("graph: %s", file)
}
