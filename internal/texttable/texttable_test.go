package texttable_test

import (
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/internal/texttable"
)

// TestPrint: the first column is aligned to the left, the others to the right; a line may be short.
func TestPrint(t *testing.T) {
	var b strings.Builder
	lines := [][]string{{"", "before", "κ"}, {"ece", "0.1", "10"}, {"  null", "12.25"}}
	if err := texttable.Print(&b, lines, 1); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"        before   κ\n" +
		"ece        0.1  10\n" +
		"  null   12.25\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestNumbers: each metric has its digits, and what is not defined is "-".
func TestNumbers(t *testing.T) {
	nan := math.NaN()
	for _, c := range [][2]string{
		{texttable.Short(.5), "0.5000"},
		{texttable.Short(nan), "-"},
		{texttable.NLL(1.25), "1.25000"},
		{texttable.NLL(1e30), "1.00000e+30"},
		{texttable.NLL(nan), "-"},
		{texttable.Metric(.0625), "0.062500"},
		{texttable.Metric(nan), "-"},
		{texttable.Signed(.5), "+0.50000"},
		{texttable.Signed(-2e7), "-2.00000e+07"},
		{texttable.Interval(.1, .2), "[0.1000, 0.2000]"},
		{texttable.Interval(nan, nan), "-"},
		{texttable.Difference(compare.Difference{Mean: -.5, Lo: -1, Hi: .25}), "-0.50000 [-1.00000, +0.25000]"},
		{texttable.Difference(compare.Difference{Mean: -.5, Lo: nan, Hi: nan}), "-0.50000"},
		{texttable.Difference(compare.Difference{Mean: nan}), "-"},
		{texttable.Seconds(.05), "50.0 ms"},
		{texttable.Seconds(1.5), "1.50 s"},
		{texttable.Seconds(250), "250 s"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %s, want %s", c[0], c[1])
		}
	}
}
