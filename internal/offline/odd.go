package offline

import (
	"fmt"
	"io"

	"github.com/plumbline/plumbline/calib/metric"
)

// NoteOddities says what makes the numbers of files, side by side or alone, mean less than they seem to.
func NoteOddities(w io.Writer, results []EvalResult) {
	for _, r := range results {
		if r.Metrics.N == 0 {
			fmt.Fprintf(w, "%s: none of the %d rows has a label and a weight above 0: every metric is undefined\n",
				r.File, len(r.Rows.Labels))
		}
		if n := r.Metrics.N; 0 < n && n < fewRows {
			fmt.Fprintf(w, "%s: %d rows say little: those of a calibrated model would show an ece of %.2g (ece_null), "+
				"and intervals are too narrow\n", r.File, n, r.Metrics.ECENull)
		}
		if note := zeroNote(r.Rows); note != "" {
			fmt.Fprintf(w, "%s: %s\n", r.File, note)
		}
		if first := results[0]; r.Rows.K != first.Rows.K {
			fmt.Fprintf(w, "%s has %d classes, %s has %d: cwece and cwece_l2 compare at equal numbers only\n", r.File,
				r.Rows.K, first.File, first.Rows.K)
		}
	}
}

// fewRows is the number of rows below which intervals are far too narrow: 13 in 100 of those of 25 rows of a calibrated
// model are above ece_null, 3 in 100 of those of 100 rows.
const fewRows = 100

// zeroNote says that rows whose label has the probability 0 decide the NLL; "" where there are none.
func zeroNote(rows metric.Rows) string {
	n := rows.ZeroRows()
	if n == 0 {
		return ""
	}
	in := "in one row"
	if n > 1 {
		in = fmt.Sprintf("in %d rows", n)
	}
	each, single := metric.ZeroNLL(rows.F64 != nil), ""
	if other := metric.ZeroNLL(false); each != other {
		single = fmt.Sprintf(" (%.1f as float32, which replay and messages have)", other)
	}
	return fmt.Sprintf("%s the true class has probability 0, perhaps by rounding: nll takes %.1f%s for each, "+
		"which decides its mean and fits", in, each, single)
}
