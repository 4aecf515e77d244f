package texttable

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/internal/printable"
)

// Print writes lines of cells. It aligns the first columns to the left, as many as left says, and the others to the
// right.
func Print(w io.Writer, lines [][]string, left int) error {
	for _, l := range lines {
		for j := range l {
			l[j] = printable.Text(l[j])
		}
	}
	alignRight(lines, left)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintln(t, strings.TrimRight(strings.Join(l, "\t"), "\t "))
	}
	return t.Flush()
}

// alignRight pads the cells of every column but the first ones to one width: tabwriter aligns all columns one way.
func alignRight(lines [][]string, left int) {
	for j := left; ; j++ {
		width := 0
		for _, l := range lines {
			if j < len(l) {
				width = max(width, len([]rune(l[j])))
			}
		}
		if width == 0 {
			return
		}
		for _, l := range lines {
			if j < len(l) {
				l[j] = strings.Repeat(" ", width-len([]rune(l[j]))) + l[j]
			}
		}
	}
}

// Short has four decimals.
func Short(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

// NLL has five decimals.
func NLL(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return decimals(v, 5)
}

// Metric has six decimals.
func Metric(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return decimals(v, 6)
}

// large is what has no use for decimals, such as the NLL of logits of 1e30: it is written in powers of 10.
const large = 1e7

func decimals(v float64, n int) string {
	if math.Abs(v) >= large {
		return fmt.Sprintf("%.*e", n, v)
	}
	return fmt.Sprintf("%.*f", n, v)
}

// Signed has five decimals and a sign.
func Signed(v float64) string {
	if math.Abs(v) >= large {
		return fmt.Sprintf("%+.5e", v)
	}
	return fmt.Sprintf("%+.5f", v)
}

// Difference is a difference with its interval.
func Difference(d compare.Difference) string {
	switch {
	case math.IsNaN(d.Mean):
		return "-"
	case math.IsNaN(d.Lo):
		return Signed(d.Mean)
	}
	return fmt.Sprintf("%s [%s, %s]", Signed(d.Mean), Signed(d.Lo), Signed(d.Hi))
}

// Interval has four decimals.
func Interval(lo, hi float64) string {
	if math.IsNaN(lo) || math.IsNaN(hi) {
		return "-"
	}
	return fmt.Sprintf("[%.4f, %.4f]", lo, hi)
}

// Seconds is a duration.
func Seconds(s float64) string {
	switch {
	case s < 0.1:
		return fmt.Sprintf("%.1f ms", 1000*s)
	case s < 100:
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}
