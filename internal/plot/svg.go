package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
)

// svg writes elements as they come.
type svg struct {
	body          bytes.Buffer
	width, height float64
}

func newSVG(width, height float64) *svg { return &svg{width: width, height: height} }

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func (s *svg) path(points []Point) {
	s.body.WriteString(`<path d="`)
	for i, p := range points {
		fmt.Fprintf(&s.body, "%c%.2f %.2f", "ML"[min(i, 1)], p.X, p.Y)
	}
}

func (s *svg) fill(polygon []Point, c color.RGBA) {
	s.path(polygon)
	fmt.Fprintf(&s.body, "Z\" fill=\"%s\"/>\n", hex(c))
}

func (s *svg) stroke(line []Point, st style) {
	if len(line) < 2 {
		return
	}
	s.path(line)
	dashes := ""
	if st.dashed {
		dashes = fmt.Sprintf(` stroke-dasharray="%d %d"`, dash, gap)
	}
	fmt.Fprintf(&s.body, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"%s/>\n", hex(st.color), st.width, dashes)
}

func (s *svg) text(at Point, text string, l label) {
	if text == "" {
		return
	}
	turn := ""
	if l.upwards {
		turn = fmt.Sprintf(` transform="rotate(-90 %.2f %.2f)"`, at.X, at.Y)
	}
	anchor := map[float64]string{0: "start", 0.5: "middle", 1: "end"}[l.across]
	fmt.Fprintf(&s.body, `<text x="%.2f" y="%.2f" font-size="%g" text-anchor="%s"%s>`, at.X, at.Y, l.size, anchor, turn)
	_ = xml.EscapeText(&s.body, []byte(text)) // a buffer takes all
	s.body.WriteString("</text>\n")
}

func (s *svg) writeTo(w io.Writer) error {
	_, err := fmt.Fprintf(w,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%.2fpt" height="%.2fpt"`+
			` viewBox="0 0 %.2f %.2f" font-family="sans-serif">`+"\n%s</svg>\n",
		s.width, s.height, s.width, s.height, s.body.Bytes())
	return err
}
