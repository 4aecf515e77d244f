package alarm

import (
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

func TestByChance(t *testing.T) {
	const pane = 10 * time.Second
	for _, c := range []struct {
		log   float64
		slice bool
		want  string
	}{
		{math.Log(20), true, "with a probability of at most 1 in 20"},
		{math.Log(4289), true, "with a probability of at most 1 in 4,200"},
		{math.Log(123456), true, "with a probability of at most 1 in 120,000"},
		{math.Log(3.15e6), true, "with a probability of at most 1 in 3.1 million"},
		{400, true, "with a probability of at most 1 in over 1,000 billion"},
		{0, true, "with a probability of at most 1 in 1"},
		{-3, false, "at most once in 0.1 minutes"},
		{math.Log(60), false, "at most once in 10 minutes"},
		{math.Log(8641), false, "at most once in 24 hours"},
		{math.Log(3.156e6), false, "at most once in 360 days"},
		{math.Log(1.07e7), false, "at most once in 3.3 years"},
		{700, false, "at most once in over 1,000 years"},
	} {
		if got := byChance(c.log, c.slice, pane); got != c.want {
			t.Errorf("byChance(%g, %t) = %q, want %q", c.log, c.slice, got, c.want)
		}
	}
}

func TestWorstBins(t *testing.T) {
	bins := []record.EvidenceBin{
		{Lo: .2, Hi: .4, N: 1, Gap: -.6}, {Lo: .4, Hi: .6, N: 10, Gap: -.3}, {Lo: .6, Hi: .8, N: 20, Gap: .1},
		{Lo: .8, Hi: 1, N: 50, Gap: -.2},
	}
	want := "; mostly in (0.8, 1] by -0.200, (0.4, 0.6] by -0.300, (0.6, 0.8] by +0.100 and 1 more"
	if got := worst(bins); got != want {
		t.Errorf("worst = %q, want %q", got, want)
	}
	if got := worst(nil); got != "" {
		t.Errorf("worst of no bins = %q, want nothing", got)
	}
}
