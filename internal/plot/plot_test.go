package plot_test

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/plot"
)

var red = color.RGBA{0xff, 0, 0, 0xff}

func panel(marks ...plot.Mark) [][]*plot.Panel {
	return [][]*plot.Panel{{{Title: "a < b", X: plot.Axis{Label: "x", Max: 1}, Y: plot.Axis{Label: "y", Max: 1},
		Grid: true, Marks: marks}}}
}

// TestPNG: a mark is where its coordinates say, and what is not a number is left out.
func TestPNG(t *testing.T) {
	var b bytes.Buffer
	marks := []plot.Mark{
		plot.Bar{From: plot.Point{X: .5}, To: plot.Point{X: 1, Y: 1}, Color: red},
		plot.Line{Points: []plot.Point{{X: math.NaN(), Y: 1}, {X: 0, Y: math.Inf(1)}}, Color: red},
		plot.Dots{},
		plot.Whisker{X: math.NaN(), Color: red},
	}
	if err := plot.Write(&b, ".png", panel(marks...)); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	size := img.Bounds()
	if size.Dx() != size.Dy() || size.Dx() < 300 {
		t.Errorf("a panel of %v", size)
	}
	left, right := 0, 0
	for y := range size.Dy() {
		for x := range size.Dx() {
			if color.RGBAModel.Convert(img.At(x, y)) != red {
				continue
			}
			if x < size.Dx()/2 {
				left++
			} else {
				right++
			}
		}
	}
	if left != 0 || right < size.Dx()*size.Dy()/5 {
		t.Errorf("%d pixels of the bar are left of the middle, %d right", left, right)
	}
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	line := plot.Line{Points: []plot.Point{{}, {X: 1, Y: 1}}, Color: red, Dashed: true}
	if err := plot.Write(&b, ".svg", panel(line, plot.Text{Text: "7"})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg ", "a &lt; b", `stroke="#ff0000"`, "stroke-dasharray", ">0.2<", ">0.0<", ">7<",
		"rotate(-90"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if err := plot.Write(&b, ".pdf", panel()); err == nil {
		t.Error("a format that there is not was written")
	}
}
