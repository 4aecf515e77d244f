package stage

import "github.com/plumbline/plumbline/calib/acc"

// ScoreBins is the number of bins of confidence scores in references.
const ScoreBins = acc.SummaryBins

// ScoreNames are the names of the confidence scores.
var ScoreNames = [3]string{"msp", "margin", "negent"}

// ScoreGrids returns the grids of s in the order of ScoreNames.
func ScoreGrids(s *acc.Seen) [3]*acc.Grid { return [3]*acc.Grid{&s.MSP, &s.Margin, &s.NegEnt} }

// ClassBins is the number of bins for distances between class shares. Class c is in bin c mod ClassBins, so that the
// memory of a rule does not depend on K.
const ClassBins = 256

// AddClasses adds predictions by class bin. dst has ClassBins elements.
func AddClasses(dst []float64, c *acc.ClassCounts) {
	for cell := range c.Cells() {
		dst[cell.Class%ClassBins] += float64(cell.Seen.N)
	}
}
