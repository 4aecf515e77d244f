package main

import (
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/offline"
)

func readPNG(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// inked counts the pixels of a colour in r.
func inked(img image.Image, r image.Rectangle, want color.RGBA) (n int) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if color.RGBAModel.Convert(img.At(x, y)) == want {
				n++
			}
		}
	}
	return n
}

// TestEvalPlotPNG: every panel of every report has its marks, on a white page.
func TestEvalPlotPNG(t *testing.T) {
	all, _ := slicedLines()
	file := writeFile(t, "all.csv", slicedHeader+strings.Join(all, ""))
	out := filepath.Join(t.TempDir(), "page.png")
	if code, _, stderr := runCommand(t, "eval", file, "--by", "tier", "--plot", out); code != exitDone {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	img := readPNG(t, out)
	b := img.Bounds()
	if b.Dx() != b.Dy() {
		t.Errorf("got a page of %v, want 3 rows of 3 square panels", b.Size())
	}
	if got := inked(img, b, color.RGBA{0xff, 0xff, 0xff, 0xff}); got < b.Dx()*b.Dy()/2 {
		t.Errorf("%d of %d pixels are white, want most", got, b.Dx()*b.Dy())
	}
	w, h := b.Dx()/3, b.Dy()/3
	right, wrong := color.RGBA{0x1f, 0x4e, 0x79, 0xff}, color.RGBA{0xc0, 0x50, 0x2d, 0xff}
	for row := range 3 {
		for col, ink := range []color.RGBA{right, wrong, right} {
			panel := image.Rect(col*w, row*h, (col+1)*w, (row+1)*h)
			if got := inked(img, panel, ink); got < 50 {
				t.Errorf("row %d, panel %d: %d pixels of its colour, want a plot", row, col, got)
			}
		}
	}
}

func TestEvalPlotSVG(t *testing.T) {
	file := writeFile(t, "four.csv", fourRows)
	out := filepath.Join(t.TempDir(), "page.svg")
	if code, _, stderr := runCommand(t, "eval", file, "--plot", out); code != exitDone {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	paths, text := 0, ""
	for d := xml.NewDecoder(strings.NewReader(string(raw))); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if tok.Name.Local == "path" {
				paths++
			}
		case xml.CharData:
			text += string(tok)
		}
	}
	for _, want := range []string{"n 4, ECE 0.0625", "Risk-coverage", "Confidences"} {
		if !strings.Contains(text, want) {
			t.Errorf("no text %q", want)
		}
	}
	if paths < 50 {
		t.Errorf("%d paths, want a drawing", paths)
	}
}

// TestEvalPlotOfFewRows: no labelled row, one row, and all rows right have panels too.
func TestEvalPlotOfFewRows(t *testing.T) {
	for _, rows := range []string{".5,.5,-1\n", ".75,.25,0\n", ".75,.25,1\n", "1,0,0\n1,0,0\n"} {
		out := filepath.Join(t.TempDir(), "page.png")
		code, _, stderr := runCommand(t, "eval", writeFile(t, "few.csv", "probs_0,probs_1,label\n"+rows), "--plot", out)
		if code != exitDone {
			t.Errorf("%q: exit code %d, stderr %q", rows, code, stderr)
			continue
		}
		if b := readPNG(t, out).Bounds(); b.Dx() < 3*b.Dy()-3 {
			t.Errorf("%q: got a page of %v, want 3 panels side by side", rows, b.Size())
		}
	}
}

func TestEvalPlotRefuses(t *testing.T) {
	file := writeFile(t, "four.csv", fourRows)
	many := []string{"eval", "--plot", filepath.Join(t.TempDir(), "x.png")}
	for range offline.MaxPlotReports + 1 {
		many = append(many, file)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"eval", file, "--plot", "x.pdf"}, exitUsage,
			`--plot "x.pdf": allowed are files that end in .png or .svg`},
		{[]string{"eval", file, "--plot", ""}, exitUsage, `--plot ""`},
		{[]string{"eval", file, "--plot", filepath.Join(t.TempDir(), "absent", "x.png")}, exitFailed, "no such file"},
		{many, exitFailed, "25 reports, allowed are 24"},
	} {
		code, _, stderr := runCommand(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("got exit code %d, stderr %q, want %d and %q", code, stderr, c.code, c.want)
		}
	}
}
