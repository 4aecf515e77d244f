package plot

import (
	"image/color"
	"math"
	"strconv"
	"strings"
)

// Point is a point of a panel, in the units of its axes.
type Point struct{ X, Y float64 }

// Axis is one of a panel's two.
type Axis struct {
	Label    string
	Min, Max float64
	Whole    bool // ticks are written without an exponent
}

// Panel is one diagram.
type Panel struct {
	Title  string // lines are divided by \n
	X, Y   Axis
	Grid   bool
	Marks  []Mark
	Legend []Entry
	Top    bool // the legend is at the top, not at the bottom
}

// Entry is a line of a legend.
type Entry struct {
	Name  string
	Color color.RGBA
}

// Mark is something that a panel shows.
type Mark interface{ draw(to *frame) }

// Line joins points; Dashed and Width, in points of 1/72 inch (0 = 1), are its style.
type Line struct {
	Points []Point
	Color  color.RGBA
	Width  float64
	Dashed bool
}

// Dots are filled circles.
type Dots struct {
	Points []Point
	Color  color.RGBA
}

// Whisker is a vertical interval, from Lo to Hi, with a short line at each end.
type Whisker struct {
	X, Lo, Hi float64
	Color     color.RGBA
}

// Bar is a filled rectangle with a white edge.
type Bar struct {
	From, To Point
	Color    color.RGBA
}

// Text is centred above a point.
type Text struct {
	At   Point
	Text string
}

// Colors of what is not a mark.
var (
	black = color.RGBA{A: 0xff}
	white = color.RGBA{0xff, 0xff, 0xff, 0xff}
	faint = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)

// Sizes in points of 1/72 inch.
const (
	side       = 10 / 2.54 * 72 // of a panel
	pad        = 5 / 25.4 * 72
	fontSize   = 9.
	smallFont  = 6.
	tickLength = 5.
	lineHeight = 1.2
)

// frame is where the marks of a panel go: the rectangle inside its axes, in points from the page's top left.
type frame struct {
	to                       canvas
	panel                    *Panel
	left, right, top, bottom float64
}

// at places a point of the panel.
func (f *frame) at(p Point) Point {
	x, y := f.panel.X, f.panel.Y
	return Point{f.left + (p.X-x.Min)/(x.Max-x.Min)*(f.right-f.left),
		f.bottom - (p.Y-y.Min)/(y.Max-y.Min)*(f.bottom-f.top)}
}

func (f *frame) all(points []Point) []Point {
	out := make([]Point, 0, len(points))
	for _, p := range points {
		if at := f.at(p); !math.IsNaN(at.X+at.Y) && !math.IsInf(at.X+at.Y, 0) {
			out = append(out, at)
		}
	}
	return out
}

func (m Line) draw(f *frame) {
	width := m.Width
	if width == 0 {
		width = 1
	}
	f.to.stroke(f.all(m.Points), style{m.Color, width, m.Dashed})
}

func (m Dots) draw(f *frame) {
	const radius, corners = 2.5, 16
	for _, c := range f.all(m.Points) {
		circle := make([]Point, corners)
		for i := range circle {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
			circle[i] = Point{c.X + radius*cos, c.Y + radius*sin}
		}
		f.to.fill(circle, m.Color)
	}
}

func (m Whisker) draw(f *frame) {
	const cap = 2.5
	ends := f.all([]Point{{m.X, m.Lo}, {m.X, m.Hi}})
	if len(ends) != 2 {
		return
	}
	s := style{color: m.Color, width: 1}
	f.to.stroke(ends, s)
	for _, e := range ends {
		f.to.stroke([]Point{{e.X - cap, e.Y}, {e.X + cap, e.Y}}, s)
	}
}

func (m Bar) draw(f *frame) {
	p := f.all([]Point{m.From, {m.To.X, m.From.Y}, m.To, {m.From.X, m.To.Y}})
	if len(p) != 4 {
		return
	}
	f.to.fill(p, m.Color)
	f.to.stroke(append(p, p[0]), style{color: white, width: 0.5})
}

func (m Text) draw(f *frame) {
	for _, at := range f.all([]Point{m.At}) {
		f.to.text(Point{at.X, at.Y - 2}, m.Text, label{size: smallFont, across: 0.5})
	}
}

// draw puts a panel into the square of the page whose top left corner is at corner.
func (p *Panel) draw(to canvas, corner Point) {
	title := strings.Split(p.Title, "\n")
	yTicks := ticks(p.Y)
	widest := 0
	for _, t := range yTicks {
		widest = max(widest, len(t.label))
	}
	f := &frame{to: to, panel: p,
		left: corner.X + pad + fontSize*(lineHeight+0.6*float64(widest)) + 2*tickLength, right: corner.X + side - pad,
		top: corner.Y + pad + fontSize*lineHeight*float64(len(title)) + fontSize, bottom: corner.Y +
			side - pad - 2*fontSize*lineHeight - tickLength}
	for i, line := range title {
		to.text(Point{corner.X + side/2, corner.Y + pad + fontSize*lineHeight*float64(i) + fontSize}, line,
			label{size: fontSize, across: 0.5})
	}
	f.axes(ticks(p.X), yTicks)
	to.text(Point{(f.left + f.right) / 2, corner.Y + side - pad}, p.X.Label, label{size: fontSize, across: 0.5})
	to.text(Point{corner.X + pad + fontSize, (f.top + f.bottom) / 2}, p.Y.Label,
		label{size: fontSize, across: 0.5, upwards: true})
	for _, m := range p.Marks {
		m.draw(f)
	}
	f.legend()
}

// axes draws both axes with their ticks, and the grid.
func (f *frame) axes(xTicks, yTicks []tick) {
	line := style{color: black, width: 0.5}
	for _, t := range xTicks {
		x := f.at(Point{t.at, f.panel.Y.Min}).X
		if f.panel.Grid && t.label != "" {
			f.to.stroke([]Point{{x, f.bottom}, {x, f.top}}, style{color: faint, width: 0.5})
		}
		f.to.stroke([]Point{{x, f.bottom}, {x, f.bottom + t.length()}}, line)
		f.to.text(Point{x, f.bottom + tickLength + fontSize}, t.label, label{size: fontSize, across: 0.5})
	}
	for _, t := range yTicks {
		y := f.at(Point{f.panel.X.Min, t.at}).Y
		if f.panel.Grid && t.label != "" {
			f.to.stroke([]Point{{f.left, y}, {f.right, y}}, style{color: faint, width: 0.5})
		}
		f.to.stroke([]Point{{f.left - t.length(), y}, {f.left, y}}, line)
		f.to.text(Point{f.left - tickLength - 2, y + fontSize/3}, t.label, label{size: fontSize, across: 1})
	}
	f.to.stroke([]Point{{f.left, f.top}, {f.left, f.bottom}, {f.right, f.bottom}}, line)
}

func (f *frame) legend() {
	const stroke = 20
	at := f.bottom - fontSize*lineHeight*float64(len(f.panel.Legend))
	if f.panel.Top {
		at = f.top
	}
	for i, e := range f.panel.Legend {
		y := at + fontSize*lineHeight*float64(i) + fontSize
		f.to.stroke([]Point{{f.right - stroke, y - fontSize/3}, {f.right, y - fontSize/3}},
			style{color: e.Color, width: 1.5})
		f.to.text(Point{f.right - stroke - 3, y}, e.Name, label{size: fontSize, across: 1})
	}
}

// tick is a place on an axis; minor ones have no label.
type tick struct {
	at    float64
	label string
}

func (t tick) length() float64 {
	if t.label == "" {
		return tickLength / 2
	}
	return tickLength
}

// ticks are at multiples of 1, 2 or 5 times a power of ten, about five of them, with a minor one between two.
func ticks(a Axis) (out []tick) {
	span := a.Max - a.Min
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, m := range []float64{2, 2.5, 2} { // 2, 5, 10
		if span/step > 6 {
			step *= m
		}
	}
	const slack = 1e-9
	for i := math.Ceil(2*a.Min/step-slack) + 0; i*step/2 <= a.Max+slack*span; i++ {
		t := tick{at: i * step / 2}
		if math.Mod(i, 2) == 0 {
			t.label = a.text(t.at, step)
		}
		out = append(out, t)
	}
	return out
}

// text writes a value with the decimals that its step has.
func (a Axis) text(v, step float64) string {
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if !a.Whole && (math.Abs(v) >= 1e6 || decimals > 6) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
