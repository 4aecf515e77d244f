package acc

import (
	"fmt"
	"math"
	"sync"

	"github.com/plumbline/plumbline/calib/metric"
)

const (
	// GridCells is the number B of equal cells of a confidence grid: every M that divides it gives exact bins.
	GridCells = 3600

	// Cells in the order of confidence: the point j/B is 2j, the open interval (j/B, (j+1)/B) is 2j+1 for
	// j <= B-2; the last interval has tailCells of its own, then comes the point 1. Points are cells of their own
	// because metrics bin by (lo, hi] and CDF counts by [lo, hi).
	lastPoint = 2 * (GridCells - 1)
	tailCells = 64
	tailFirst = lastPoint + 1
	cellOne   = tailFirst + tailCells
	cellCount = cellOne + 1
)

// Bits of 1/B and of 2^-½/B; cell i of the tail has 1-c in (2^(-(i+1)/2)/B, 2^(-i/2)/B], the last one down to 0.
var (
	tailBits = int64(math.Float64bits(1.0 / GridCells))
	tailHalf = int64(math.Float64bits(math.Sqrt(0.5) / GridCells))
)

// edge returns j/B. Correctly rounded, hence the same float64 as i/M for the same number.
func edge(j int) float64 { return float64(j) / GridCells }

// cellOf returns the cell of c in [0,1], in float64 without any quantisation.
func cellOf(c float64) int {
	x := float64(c * GridCells)
	j := int(x)
	// x is off by less than 2^-41, so away from the integers its floor is right.
	const near = 1e-9
	if f := x - float64(j); f < near || f > 1-near {
		return cellNearEdge(c, int(x+0.5))
	}
	// Both are computed: which of them it is cannot be predicted where many rows are almost certain.
	cell, tail := 2*j+1, tailFirst+tailOf(c)
	if j == GridCells-1 {
		cell = tail
	}
	return cell
}

// cellNearEdge returns the cell of a c that is very near j/B.
func cellNearEdge(c float64, j int) int {
	if c < edge(j) {
		j--
	} else if c == edge(j) {
		return pointCell(j)
	}
	if j == GridCells-1 {
		return tailFirst + tailOf(c)
	}
	return 2*j + 1
}

func pointCell(j int) int {
	if j == GridCells {
		return cellOne
	}
	return 2 * j
}

// tailOf returns the half octave of 1-c, which is exact, for c in ((B-1)/B, 1), and some cell of the tail for
// others. Scaling by 2 moves the exponent only, so integer arithmetic on the bits compares with the thresholds exactly.
func tailOf(c float64) int {
	d := int64(math.Float64bits(1 - c))
	octave := (tailBits - d) >> 52 // below 0 where rounding of (B-1)/B makes d exceed 1/B by an ulp
	i := int(2 * octave)
	if d+octave<<52 <= tailHalf {
		i++
	}
	return max(0, min(i, tailCells-1))
}

// cellBounds returns the interval of a cell; lo = hi for a point. The ends do not belong to the cell, except hi for
// the cells of the tail; the last of these ends at 1.
func cellBounds(cell int) (lo, hi float64) {
	switch {
	case cell == cellOne:
		return 1, 1
	case cell >= tailFirst:
		i := cell - tailFirst
		lo, hi = 1-tailEdge(i), 1-tailEdge(i+1)
		if i == 0 {
			lo = edge(GridCells - 1)
		}
		if i == tailCells-1 {
			hi = 1
		}
		return lo, hi
	case cell%2 == 0:
		return edge(cell / 2), edge(cell / 2)
	}
	return edge(cell / 2), edge(cell/2 + 1)
}

func tailEdge(i int) float64 {
	b := tailBits
	if i%2 == 1 {
		b = tailHalf
	}
	return math.Ldexp(math.Float64frombits(uint64(b)), -(i / 2))
}

// binOf returns the bin (i/m, (i+1)/m] of a cell; confidence 0 is put into the first. m must divide GridCells.
func binOf(cell, m int) int {
	switch {
	case cell >= tailFirst:
		return m - 1
	case cell%2 == 1:
		return cell / 2 * m / GridCells
	case cell == 0:
		return 0
	}
	return (cell/2*m+GridCells-1)/GridCells - 1
}

// cdfBinOf returns the bin [i/k, (i+1)/k) of a cell, the last one closed. k must divide GridCells.
func cdfBinOf(cell, k int) int {
	if cell >= tailFirst {
		return k - 1
	}
	return cell / 2 * k / GridCells
}

func checkDivides(m int) error {
	if m < 1 || GridCells%m != 0 {
		return fmt.Errorf("%d bins: allowed are the divisors of %d: %w", m, GridCells, ErrShape)
	}
	return nil
}

// cellGroups has the runs of neighbouring cells that a Summary merges into one.
type cellGroups struct {
	of          [cellCount]uint16 // the middle cell of a cell's group, which stands for it
	first, last [cellCount]uint16 // of the group of a cell
}

const (
	groupWidth = 12 // intervals in a group, at most
	groupShare = 16 // a group is at most 1/groupShare as wide as its distance from 0 and 1, if it is not one interval
)

// groupsOfCells returns groups that no edge divides: none of CoarseBins bins or fewer, nor of the bins that windows
// show of predictions (SummaryBins) and of the CDF. A cell at an edge, and each cell of the tail, is a group of its
// own.
var groupsOfCells = sync.OnceValue(func() *cellGroups {
	g := new(cellGroups)
	for first := 0; first < cellCount; {
		last, j := first, first/2
		if most := min(groupWidth, j/groupShare, (GridCells-j)/groupShare); !atEdge(first) {
			for last+1 < tailFirst && !atEdge(last+1) && last-first < 2*(most-1) {
				last++
			}
		}
		for cell := first; cell <= last; cell++ {
			g.of[cell], g.first[cell], g.last[cell] = uint16((first+last)/2), uint16(first), uint16(last)
		}
		first = last + 1
	}
	return g
})

// atEdge reports whether a cell is a point between two bins of a number that a Summary can show.
func atEdge(cell int) bool {
	if cell%2 != 0 || cell >= tailFirst {
		return cell >= tailFirst
	}
	for m := 1; m <= SummaryBins; m++ {
		shown := m <= CoarseBins || m == metric.CDFBins || m == SummaryBins
		if shown && GridCells%m == 0 && cell/2%(GridCells/m) == 0 {
			return true
		}
	}
	return false
}
