package alarm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Labels that come sooner for wrong rows make every test of this package wrong, and refits learn from them
// (docs/math.md, Late labels). Nothing tells that from the rows as they come, but the lags of the sampled rows do.
// Where labels come sooner for one class, such as frauds, there are at first no lags to compare: then only the
// predictions without a label tell.

const (
	// lagTime is the number of rows of neighbouring prediction times, lagRows that of them of similar confidence, whose
	// lags are compared: of newer rows only the quick labels are there, and sure rows may be looked at later.
	lagTime = 250
	lagRows = 50
	// soonerZ comes by chance once in 3.5 million alerts.
	soonerZ = 5
	// soonerLeast is the least difference that is told: P(a wrong row's label comes sooner) - 1/2.
	soonerLeast = .05
	// oneClass is the share of labels that one class has where labels of others have hardly begun to come.
	oneClass = .9
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

const soonerText = "labels of wrong rows came sooner"

// oneClassFirst says that the labels since an event time are nearly all of one class, of which the model expects far
// fewer of the same rows, while most predictions of the time of these rows have no label; else "". It cannot tell
// whether the others will have labels like these:
//
//	n_c ≥ .9 n,  n_c - Σ p_c > 5 √Σ p_c (1 - p_c)   over the n sampled rows, n_c of which have the class
func oneClassFirst(k *stage.Key, since int64) string {
	var rows []*acc.SampleRow
	of, class, to := map[int32]int{}, int32(0), since
	for i := range k.Sample {
		row := &k.Sample[i]
		if row.TS < since {
			continue
		}
		rows, to = append(rows, row), max(to, row.TS)
		if of[row.Y]++; of[row.Y] > of[class] {
			class = row.Y
		}
	}
	if len(rows) == 0 || float64(of[class]) < oneClass*float64(len(rows)) {
		return ""
	}
	var expected, variance float64
	z, p := make([]float64, k.K), make([]float64, k.K)
	for _, row := range rows {
		for j, x := range row.Z {
			z[j] = float64(x)
		}
		if _, _, err := stage.Evaluate(nil, z, p, int(row.Y)); err != nil {
			return ""
		}
		expected, variance = expected+p[class], variance+p[class]*(1-p[class])
	}
	if float64(of[class])-expected <= soonerZ*math.Sqrt(variance) {
		return ""
	}
	predictions, labelled, err := k.Covered(since, to)
	if err != nil || 2*labelled >= predictions {
		return ""
	}
	return fmt.Sprintf("nearly all labels of predictions since the start were of class %d (%d of %d, where the model "+
		"expects %.0f), and %.0f %% of these predictions had none yet: if labels of that class come sooner, this "+
		"alert is of the delay (alarm.matured)", class, of[class], len(rows), expected,
		100*(1-float64(labelled)/float64(predictions)))
}

// warn adds to the message of an alert that fires on a whole version what soonerWhenWrong says, and until that has
// rows to compare what oneClassFirst or stage.Withheld does. Where neither says anything now, what the message before
// said remains, with its time: it still tells why the alert fired.
func (t *Stage) warn(k *stage.Key, a *record.Alert, before string) {
	if t.cfg.Matured != 0 || k.Slice != "" || a.State != stage.Firing {
		return
	}
	_, said, warned := strings.Cut(before, warning)
	text := soonerWhenWrong(k)
	if text == "" && !strings.Contains(said, soonerText) {
		if text = oneClassFirst(k, a.Since.UnixNano()); text == "" {
			text, _ = stage.Withheld(k, a.Since.UnixNano()) // an error is of a row that no test takes
		}
	}
	switch {
	case text != "":
		a.Message += warning + a.At.String() + " " + text
	case warned:
		a.Message += warning + said
	}
}

// warning begins what warn adds, before the time.
const warning = ". At "

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
