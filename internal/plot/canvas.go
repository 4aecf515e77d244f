package plot

import (
	"fmt"
	"image/color"
	"io"
)

// canvas is a page. Places and sizes are in points of 1/72 inch from its top left corner.
type canvas interface {
	fill(polygon []Point, c color.RGBA)
	stroke(line []Point, s style)
	text(at Point, s string, l label)
	writeTo(w io.Writer) error
}

type style struct {
	color  color.RGBA
	width  float64
	dashed bool
}

// label is how a text is set: across is which part of it, from 0 to 1, is at its place.
type label struct {
	size, across float64
	upwards      bool
}

// dash is the length of a dash, and gap that between two.
const (
	dash = 4
	gap  = 3
)

// Formats are the extensions of files that can be written.
var Formats = []string{".png", ".svg"}

// Write draws a page with the panels in their rows, in the format of an extension.
func Write(w io.Writer, ext string, rows [][]*Panel) error {
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r))
	}
	width, height := side*float64(columns), side*float64(len(rows))
	var page canvas
	switch ext {
	case ".svg":
		page = newSVG(width, height)
	case ".png":
		var err error
		if page, err = newPNG(width, height); err != nil {
			return err
		}
	default:
		return fmt.Errorf("plot: format %q, allowed are %v", ext, Formats)
	}
	page.fill([]Point{{0, 0}, {width, 0}, {width, height}, {0, height}}, white)
	for i, r := range rows {
		for j, p := range r {
			p.draw(page, Point{side * float64(j), side * float64(i)})
		}
	}
	return page.writeTo(w)
}
