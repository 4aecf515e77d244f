package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"image/color"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// dashboard is what a picture needs of Grafana's model.
type dashboard struct {
	Title  string
	Panels []graph
}

type graph struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// curve is a series of an answer, seconds against values.
type curve struct {
	name string
	xys  plotter.XYs
}

// pictures draws each dashboard, as deploy/grafana has it, from Prometheus's answers since begin: no Grafana is to be
// had, so gonum/plot puts the panels where Grafana would.
func pictures(t *testing.T, dir, prometheus string, begin time.Time) {
	t.Helper()
	files, err := filepath.Glob(root + "/deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(body, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json") + ".png"
		if err := d.draw(filepath.Join(dir, name), prometheus, begin); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Logf("pictures of %d dashboards, plotted: %s", len(files), dir)
}

// Sizes of a picture: a cell of Grafana's grid, and the head.
const (
	cellWidth, cellHeight = 48 * vg.Length(1), 28 * vg.Length(1)
	head                  = 24 * vg.Length(1)
	columns               = 24
)

func (d *dashboard) draw(file, prometheus string, begin time.Time) error {
	rows := 0
	for _, g := range d.Panels {
		rows = max(rows, g.GridPos.Y+g.GridPos.H)
	}
	const dpi = 72
	width, height := columns*cellWidth, vg.Length(rows)*cellHeight+head
	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	c := draw.New(img)
	write(c, vg.Point{X: 6, Y: height - 18}, 15, d.Title)
	for _, g := range d.Panels {
		top := height - head - vg.Length(g.GridPos.Y)*cellHeight
		left := vg.Length(g.GridPos.X) * cellWidth
		cell := draw.Canvas{Canvas: c, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left + 4, Y: top - vg.Length(g.GridPos.H)*cellHeight + 4},
			Max: vg.Point{X: left + vg.Length(g.GridPos.W)*cellWidth - 4, Y: top - 2}}}
		if g.Type == "row" {
			write(cell, cell.Min, 13, g.Title)
			continue
		}
		curves, err := g.ask(prometheus, begin)
		if err != nil {
			return fmt.Errorf("%s: %w", g.Title, err)
		}
		if g.Type == "stat" {
			g.number(cell, curves)
		} else if err := g.lines(cell, curves, time.Since(begin)); err != nil {
			return fmt.Errorf("%s: %w", g.Title, err)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(out)
	return err
}

func face(size vg.Length) draw.TextStyle {
	return draw.TextStyle{Color: color.Black, Font: font.From(plot.DefaultFont, size), Handler: plot.DefaultTextHandler}
}

func write(c draw.Canvas, at vg.Point, size vg.Length, what string) { c.FillText(face(size), at, what) }

var variables = strings.NewReplacer("$model", ".*", "$version", ".*", "$window", ".*", "$__rate_interval", "10s")

// ask returns the curves of a panel.
func (g *graph) ask(prometheus string, begin time.Time) ([]curve, error) {
	var out []curve
	for _, target := range g.Targets {
		var answer struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Values [][2]any
				}
			}
		}
		q := url.Values{"query": {variables.Replace(target.Expr)}, "step": {"1"},
			"start": {strconv.FormatInt(begin.Unix(), 10)}, "end": {strconv.FormatInt(time.Now().Unix(), 10)}}
		if err := get(prometheus+"/api/v1/query_range?"+q.Encode(), &answer); err != nil {
			return nil, err
		}
		for _, r := range answer.Data.Result {
			c := curve{name: legend(target.LegendFormat, r.Metric)}
			for _, v := range r.Values {
				y, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
				if err != nil {
					return nil, err
				}
				at, ok := v[0].(float64)
				if ok && !math.IsNaN(y) && !math.IsInf(y, 0) {
					c.xys = append(c.xys, plotter.XY{X: at - float64(begin.Unix()), Y: y})
				}
			}
			if len(c.xys) > 0 {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

var label = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

func legend(format string, metric map[string]string) string {
	if format == "" {
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(metric)) {
			pairs = append(pairs, k+"="+metric[k])
		}
		return strings.Join(pairs, " ")
	}
	return label.ReplaceAllStringFunc(format, func(m string) string { return metric[label.FindStringSubmatch(m)[1]] })
}

// number draws the newest value.
func (g *graph) number(c draw.Canvas, curves []curve) {
	write(c, vg.Point{X: c.Min.X, Y: c.Max.Y - 14}, 11, g.Title)
	what := "no data"
	if len(curves) > 0 {
		xys := curves[0].xys
		what = unit(g.FieldConfig.Defaults.Unit).format(xys[len(xys)-1].Y)
	}
	write(c, vg.Point{X: c.Min.X + 10, Y: c.Min.Y + 20}, 30, what)
}

// lines draws a graph of the time from 0 to last, and below it the legend.
func (g *graph) lines(c draw.Canvas, curves []curve, last time.Duration) error {
	const mostNames, nameHeight = 6, 11 * vg.Length(1)
	p := plot.New()
	p.Title.Text = g.Title
	p.Title.TextStyle = face(11)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = text.XCenter, text.YTop
	p.X.Label.Text = "seconds"
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Size = 8
	}
	u := unit(g.FieldConfig.Defaults.Unit)
	p.Y.Tick.Marker = u
	p.Add(plotter.NewGrid())
	names := plot.NewLegend()
	names.TextStyle.Font.Size = 9
	names.Top, names.Left = true, true
	slices.SortStableFunc(curves, func(a, b curve) int {
		return cmp.Compare(b.xys[len(b.xys)-1].Y, a.xys[len(a.xys)-1].Y)
	})
	for i, s := range curves {
		line, err := plotter.NewLine(s.xys)
		if err != nil {
			return err
		}
		line.Color, line.Width = plotutil.Color(i), 1.2
		line.Dashes = plotutil.Dashes(i / len(plotutil.DefaultColors))
		p.Add(line)
		if i < mostNames {
			names.Add(fmt.Sprintf("%s  %s", s.name, u.format(s.xys[len(s.xys)-1].Y)), line)
		}
	}
	if more := len(curves) - mostNames; more > 0 {
		names.Add(fmt.Sprintf("and %d more", more))
	}
	if len(curves) == 0 {
		names.Add("no data")
	}
	p.X.Min, p.X.Max = 0, last.Seconds()
	if p.Y.Min >= 0 {
		p.Y.Min = 0
	}
	if p.Y.Max <= p.Y.Min {
		p.Y.Max = p.Y.Min + 1
	}
	height := vg.Length(min(len(curves), mostNames+1)+1) * nameHeight
	p.Draw(draw.Crop(c, 0, 0, height, 0))
	names.Draw(draw.Crop(c, 8, 0, 0, height-c.Max.Y+c.Min.Y))
	return nil
}

// unit is a unit of Grafana.
type unit string

func (u unit) format(v float64) string {
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	switch u {
	case "percentunit":
		return short(100*v) + " %"
	case "s":
		return short(v) + " s"
	case "reqps":
		return short(v) + " /s"
	case "bytes":
		return short(v/1e6) + " MB"
	}
	return short(v)
}

// Ticks implements plot.Ticker.
func (u unit) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = u.format(ticks[i].Value)
		}
	}
	return ticks
}
