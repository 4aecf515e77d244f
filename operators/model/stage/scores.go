package stage

import "github.com/plumbline/plumbline/calib/acc"

// ScoreBins are the bins of confidence scores in references.
const ScoreBins = 60

// ScoreNames are the confidence score functions.
var ScoreNames = [3]string{"msp", "margin", "negent"}

// ScoreGrids are their grids of a Seen.
func ScoreGrids(s *acc.Seen) [3]*acc.Grid { return [3]*acc.Grid{&s.MSP, &s.Margin, &s.NegEnt} }

// AddCounts adds the rows of a grid by bin, ScoreBins of them.
func AddCounts(dst []float64, g *acc.Grid) error {
	bins, err := g.Bins(ScoreBins)
	if err != nil {
		return err
	}
	for j := range bins {
		dst[j] += float64(bins[j].N)
	}
	return nil
}

// ClassBins are the bins of distances of class shares: class c is in bin c mod ClassBins, so that rules take the same
// memory for any K.
const ClassBins = 256

// AddClasses adds predictions by class.
func AddClasses(dst []float64, c *acc.ClassCounts) {
	for cell := range c.Cells() {
		dst[cell.Class%ClassBins] += float64(cell.Seen.N)
	}
}
