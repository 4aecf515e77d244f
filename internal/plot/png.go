package plot

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// scale is pixels a point: 96 an inch.
const scale = 96. / 72

// raster draws pixels.
type raster struct {
	img   *image.RGBA
	font  *opentype.Font
	faces map[float64]font.Face
}

func newPNG(width, height float64) (*raster, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("plot: font: %w", err)
	}
	size := image.Rect(0, 0, int(math.Round(width*scale)), int(math.Round(height*scale)))
	return &raster{img: image.NewRGBA(size), font: f, faces: map[float64]font.Face{}}, nil
}

func (r *raster) fill(polygon []Point, c color.RGBA) {
	if len(polygon) < 3 {
		return
	}
	lo, hi := polygon[0], polygon[0]
	for _, p := range polygon {
		lo, hi = Point{min(lo.X, p.X), min(lo.Y, p.Y)}, Point{max(hi.X, p.X), max(hi.Y, p.Y)}
	}
	box := image.Rect(int(lo.X*scale), int(lo.Y*scale), int(hi.X*scale)+2, int(hi.Y*scale)+2).Intersect(r.img.Bounds())
	if box.Empty() {
		return
	}
	z := vector.NewRasterizer(box.Dx(), box.Dy())
	for i, p := range polygon {
		x, y := float32(p.X*scale)-float32(box.Min.X), float32(p.Y*scale)-float32(box.Min.Y)
		if i == 0 {
			z.MoveTo(x, y)
			continue
		}
		z.LineTo(x, y)
	}
	z.ClosePath()
	z.Draw(r.img, box, image.NewUniform(c), image.Point{})
}

func (r *raster) stroke(line []Point, s style) {
	for i := range line[:max(0, len(line)-1)] {
		a, b := line[i], line[i+1]
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		if length == 0 {
			continue
		}
		along := Point{(b.X - a.X) / length, (b.Y - a.Y) / length}
		step, drawn := length, length
		if s.dashed {
			step, drawn = dash+gap, dash
		}
		for from := 0.; from < length; from += step {
			r.segment(a, along, from, min(from+drawn, length), s)
		}
	}
}

// segment draws a piece of a line from a, a little longer than it is, so that pieces join.
func (r *raster) segment(a, along Point, from, to float64, s style) {
	half := s.width / 2
	from, to = from-half/2, to+half/2
	side := Point{-along.Y * half, along.X * half}
	p, q := Point{a.X + along.X*from, a.Y + along.Y*from}, Point{a.X + along.X*to, a.Y + along.Y*to}
	r.fill([]Point{{p.X + side.X, p.Y + side.Y}, {q.X + side.X, q.Y + side.Y}, {q.X - side.X, q.Y - side.Y},
		{p.X - side.X, p.Y - side.Y}}, s.color)
}

func (r *raster) face(size float64) font.Face {
	f := r.faces[size]
	if f == nil {
		var err error
		if f, err = opentype.NewFace(r.font, &opentype.FaceOptions{Size: size, DPI: 72 * scale,
			Hinting: font.HintingFull}); err != nil {
			panic("plot: " + err.Error()) // the font is ours
		}
		r.faces[size] = f
	}
	return f
}

func (r *raster) text(at Point, text string, l label) {
	face := r.face(l.size)
	width := font.MeasureString(face, text)
	back := fixed.Int26_6(float64(width) * l.across)
	if !l.upwards {
		d := font.Drawer{Dst: r.img, Src: image.NewUniform(black), Face: face,
			Dot: fixed.Point26_6{X: fixed.Int26_6(at.X*scale*64) - back, Y: fixed.Int26_6(at.Y * scale * 64)}}
		d.DrawString(text)
		return
	}
	// Drawn from left to right beside the page, then turned onto it.
	m := face.Metrics()
	flat := image.NewRGBA(image.Rect(0, 0, width.Ceil(), (m.Ascent + m.Descent).Ceil()))
	d := font.Drawer{Dst: flat, Src: image.NewUniform(black), Face: face, Dot: fixed.Point26_6{Y: m.Ascent}}
	d.DrawString(text)
	b := flat.Bounds()
	turned := image.NewRGBA(image.Rect(0, 0, b.Dy(), b.Dx()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			turned.SetRGBA(y, b.Dx()-1-x, flat.RGBAAt(x, y))
		}
	}
	corner := image.Pt(int(at.X*scale)-m.Ascent.Ceil(), int(at.Y*scale)-b.Dx()+back.Ceil())
	draw.Draw(r.img, turned.Bounds().Add(corner), turned, image.Point{}, draw.Over)
}

func (r *raster) writeTo(w io.Writer) error { return png.Encode(w, r.img) }
