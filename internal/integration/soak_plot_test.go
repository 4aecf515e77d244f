//go:build integration

package integration

import (
	"image/color"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/plot"
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
	ink  color.RGBA
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
		{"memory (MB)", []soakLine{{"resident", func(x soakSample) float64 { return x.rss }, soakInk},
			{"heap in use", func(x soakSample) float64 { return x.heap }, soakHeap}}},
		{"goroutines", []soakLine{{"", func(x soakSample) float64 { return x.goroutines }, soakInk}}},
	}
	var page [][]*plot.Panel
	for i, panel := range panels {
		p := &plot.Panel{X: plot.Axis{Label: "minutes", Max: samples[len(samples)-1].at / 60},
			Y: plot.Axis{Label: panel.label}}
		most := 0.0
		for _, l := range panel.lines {
			most = max(most, quantile(samples, l.of, 1))
		}
		p.Y.Max = 1.1*most + 1
		p.Marks = append(p.Marks, plot.Bar{From: plot.Point{X: from.Minutes()},
			To: plot.Point{X: (from + span).Minutes(), Y: p.Y.Max}, Color: soakShade})
		for _, l := range panel.lines {
			line := plot.Line{Color: l.ink}
			for _, x := range samples {
				line.Points = append(line.Points, plot.Point{X: x.at / 60, Y: l.of(x)})
			}
			p.Marks = append(p.Marks, line)
			if l.name != "" {
				p.Legend = append(p.Legend, plot.Entry{Name: l.name, Color: l.ink})
			}
		}
		if i%2 == 0 {
			page = append(page, nil)
		}
		page[len(page)-1] = append(page[len(page)-1], p)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := plot.Write(f, ".svg", page); err != nil {
		t.Fatal(err)
	}
}
