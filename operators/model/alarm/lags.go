package alarm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Labels that come sooner for wrong rows make every test of this package wrong, and refits learn from them
// (docs/math.md, Late labels). Nothing tells that from the rows as they come, but the lags of the sampled rows do.

const (
	// lagTime is the number of rows of neighbouring prediction times, lagRows that of them of similar confidence, whose
	// lags are compared: of newer rows only the quick labels are there, and sure rows may be looked at later.
	lagTime = 250
	lagRows = 50
	// soonerZ comes by chance once in 3.5 million alerts.
	soonerZ = 5
	// soonerLeast is the least difference that is told: P(a wrong row's label comes sooner) - 1/2.
	soonerLeast = .05
)

// lagged is a sampled row: its prediction time, confidence, and the time to its label.
type lagged struct {
	ts, lag int64
	conf    float64
	hit     bool
}

// soonerWhenWrong says that the labels of wrong rows come sooner than those of right rows of about the same time and
// confidence; "" where they do not. It is the rank-sum test within strata (van Elteren, without weights), with W the
// sum of the ranks of the lags of the n₀ wrong rows among the n of a stratum, ties at their mean rank:
//
//	z = Σ (W - n₀(n+1)/2) / √Σ Var W,  Var W = n₀ n₁/12 · (n + 1 - Σ (t³ - t)/(n(n - 1)))
func soonerWhenWrong(k *stage.Key) string {
	rows, sc := make([]lagged, 0, len(k.Sample)), stage.NewScorer(k.K)
	for i := range k.Sample {
		row := &k.Sample[i]
		s, err := sc.Row(nil, row, math.Inf(1))
		if err != nil {
			return ""
		}
		rows = append(rows, lagged{row.TS, row.LabelTS - row.TS, s.Confidence, s.Hit})
	}
	slices.SortStableFunc(rows, func(a, b lagged) int { return cmp.Compare(a.ts, b.ts) })
	var off, variance, pairs float64
	for near := range slices.Chunk(rows, lagTime) {
		slices.SortStableFunc(near, func(a, b lagged) int { return cmp.Compare(a.conf, b.conf) })
		for stratum := range slices.Chunk(near, lagRows) {
			o, v, p := rankSum(stratum)
			off, variance, pairs = off+o, variance+v, pairs+p
		}
	}
	if !(off < -soonerZ*math.Sqrt(variance)) || -off < soonerLeast*pairs {
		return ""
	}
	return fmt.Sprintf("%s than those of right rows like them (median %s, %s): alarms and refits are not to be trusted"+
		" without alarm.matured", soonerText, medianLag(rows, false), medianLag(rows, true))
}

const soonerText = ". Labels of wrong rows come sooner"

// warn adds to the message of an alert that fires on a whole version what soonerWhenWrong says.
func (t *Stage) warn(k *stage.Key, a *record.Alert) {
	if t.cfg.Matured == 0 && k.Slice == "" && a.State == stage.Firing && !strings.Contains(a.Message, soonerText) {
		a.Message += soonerWhenWrong(k)
	}
}

// rankSum returns W less its mean, its variance, and the number of pairs of a wrong and a right row.
func rankSum(rows []lagged) (off, variance, pairs float64) {
	slices.SortFunc(rows, func(a, b lagged) int { return cmp.Compare(a.lag, b.lag) })
	n, wrong, ties := float64(len(rows)), 0.0, 0.0
	for from := 0; from < len(rows); {
		to, misses := from, 0.0
		for ; to < len(rows) && rows[to].lag == rows[from].lag; to++ {
			if !rows[to].hit {
				misses++
			}
		}
		t := float64(to - from)
		off += misses * (float64(from) + (t+1)/2)
		wrong, ties, from = wrong+misses, ties+t*t*t-t, to
	}
	if pairs = wrong * (n - wrong); pairs == 0 {
		return 0, 0, 0
	}
	return off - wrong*(n+1)/2, pairs / 12 * (n + 1 - ties/(n*(n-1))), pairs
}

func medianLag(rows []lagged, hit bool) time.Duration {
	var lags []int64
	for _, r := range rows {
		if r.hit == hit {
			lags = append(lags, r.lag)
		}
	}
	slices.Sort(lags)
	return time.Duration(lags[len(lags)/2]).Round(time.Second)
}
