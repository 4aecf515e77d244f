package stage

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
)

// Labels that come sooner for wrong rows make every test on calibration wrong, and refits learn from them
// (docs/math.md, Late labels). Nothing tells that from the rows as they come, but the lags of the sampled rows do.

const (
	// lagTime is the number of rows of neighbouring prediction times, lagRows that of them of similar confidence, whose
	// lags are compared: of newer rows only the quick labels are there, and sure rows may be looked at later.
	lagTime = 250
	lagRows = 50
	// soonerZ comes by chance once in 3.5 million times. biasedZ does so once in 2,000, and holds up what would take
	// force until more rows refute it: a first answer may be of 200 rows, too few for the other.
	soonerZ = 5
	biasedZ = 3.5
	// soonerLeast is the least difference that is told: P(a wrong row's label comes sooner) - 1/2, and soonerBias that
	// by which rows are a biased sample: a smaller one may be that of confidences within a stratum.
	soonerLeast = .05
	soonerBias  = .15
	// slowShare is the quantile of the lags of the slow rows, right ones or wrong ones, that counts.
	slowShare = .95
)

// Settled says how many times the lag of the slow rows must have passed since the first prediction: its labels are of
// the quick rows first.
const (
	// SettledInOrder is for what takes rows in the order of their labels: then they are all alike.
	SettledInOrder = 2
	// SettledSince is for what takes all rows of predictions since a time: of the newest ones only the quick labels are
	// there.
	SettledSince = 10
)

// lagged is a sampled row: the time to its label, the difference of its two largest scores, its place in the sample,
// and whether the model was right.
type lagged struct {
	lag    int64
	margin float32
	place  int32
	hit    bool
}

// outcomes is what sooner says of a sample, which several stages ask in one pane; added and rows tell the sample, which
// Keep changes.
type outcomes struct {
	added  int64
	rows   int
	sooner difference
	class  classLags
}

// difference is P(a wrong row's label comes later than that of a right row like it) - 1/2, with its standard score.
type difference struct{ later, z float64 }

// beyond is how far the labels of wrong rows come later, negative if they come sooner; 0 where that may be chance.
func (d difference) beyond(z float64) float64 {
	if math.Abs(d.z) <= z {
		return 0
	}
	return d.later
}

// lagging is that of the sampled rows.
func (k *Key) lagging() outcomes {
	if o := &k.outcomes; o.added != k.Added || o.rows != len(k.Sample) {
		rows := lags(k.Sample)
		*o = outcomes{added: k.Added, rows: len(k.Sample), sooner: sooner(rows)}
		o.class = lagsOfClass(rows, k.Sample, k.K)
	}
	return k.outcomes
}

// SoonerWhenWrong says that the labels of wrong rows come sooner than those of right rows of about the same time and
// margin; "" where they do not. It is the rank-sum test within strata (van Elteren, without weights), with W the
// sum of the ranks of the lags of the n₀ wrong rows among the n of a stratum, ties at their mean rank:
//
//	z = Σ (W - n₀(n+1)/2) / √Σ Var W,  Var W = n₀ n₁/12 · (n + 1 - Σ (t³ - t)/(n(n - 1)))
func SoonerWhenWrong(k *Key) string {
	if k.lagging().sooner.beyond(soonerZ) > -soonerLeast {
		return ""
	}
	rows := lags(k.Sample)
	return fmt.Sprintf("%s than those of right rows like them (median %s, %s): alarms and refits are not to be trusted"+
		" without alarm.matured", SoonerText, medianLag(rows, false), medianLag(rows, true))
}

// SoonerText begins what SoonerWhenWrong says.
const SoonerText = "labels of wrong rows came sooner"

// Delays remembers that the labels of one outcome come sooner than others. The sample forgets it: where it is shorter
// than the slow labels take, quick ones have left it before the slow ones of predictions of their time have come, and
// while no predictions are made nothing but slow ones come.
type Delays struct {
	Seen   int64 // the latest label when the sample showed it
	Slow   int64 // what most of the slow ones took; 0 = it never did
	Newest int64 // the newest prediction with a label
	Steady int64 // the first one since predictions paused for long
}

// pauses is how many times as long as a pause slow labels take.
const pauses = 4

// steady is since when predictions have come without a pause, up to the latest label. In a pause the labels that come
// are the slow ones, and after it the quick ones come first.
func (d *Delays) steady(sample []acc.SampleRow, last int64) int64 {
	next, newest := int64(math.MaxInt64), d.Newest
	for i := range sample {
		if ts := sample[i].TS; ts > d.Newest {
			next, newest = min(next, ts), max(newest, ts)
		}
	}
	if newest > d.Newest && next-d.Newest >= d.Slow/pauses {
		d.Steady = next
	}
	if d.Newest = newest; last-newest >= d.Slow/pauses {
		return last
	}
	return d.Steady
}

// soonerYet says that labels come sooner when the model was wrong, or when it was right, or that those of a class do or
// come later, and that those since an event time have not come for long enough to be of all rows alike; else "".
func (k *Key) soonerYet(since, settled int64) string {
	if len(k.Sample) == 0 {
		return ""
	}
	last, longest := k.lastLabel()
	d := &Delays{}
	if k.Delays != nil {
		d = k.Delays
	}
	steady := int64(math.MinInt64)
	if d.Slow > 0 {
		steady = d.steady(k.Sample, last)
	}
	// Soon said: so it is for most of the time. But what is remembered is looked for again.
	if last-since < settled*longest || d.Slow > 0 && last-d.Seen >= longest {
		for _, seen := range []func() (string, int64){k.outcomeDelays, k.classDelays} {
			why, slow := seen()
			if slow == 0 {
				continue
			}
			d.Seen, d.Slow = last, slow
			if last-since < settled*slow {
				return why + fmt.Sprintf(", so those of the first %s are no fair sample: set alarm.matured to the "+
					"longest delay", time.Duration(settled*slow).Round(time.Second))
			}
		}
	}
	if last-d.Seen >= SettledSince*d.Slow || last-max(since, steady) >= settled*d.Slow {
		return ""
	}
	return fmt.Sprintf("labels of some outcomes came sooner than others of rows like them until %s, so those of the "+
		"first %s are no fair sample: set alarm.matured to the longest delay",
		time.Unix(0, d.Seen).UTC().Format(time.RFC3339), time.Duration(settled*d.Slow).Round(time.Second))
}

// outcomeDelays says whether labels of wrong rows come sooner or later, and how long most of the slow ones take; 0 if
// they do not.
func (k *Key) outcomeDelays() (string, int64) {
	side := k.lagging().sooner.beyond(biasedZ)
	if math.Abs(side) < soonerBias {
		return "", 0
	}
	rows := lags(k.Sample)
	first, then := "wrong", "right"
	if side > 0 {
		first, then = then, first
	}
	return fmt.Sprintf("labels of %s rows came sooner than those of %s rows like them (median %s, %s)", first, then,
		medianLag(rows, side > 0), medianLag(rows, side < 0)), int64(quantileOfLags(rows, side < 0, slowShare))
}

// OutcomesDelay reports whether the labels of wrong rows, or of a class, come sooner or later than those of rows like
// them.
func OutcomesDelay(k *Key) bool {
	_, longest := k.lastLabel()
	if longest == 0 {
		return false
	}
	of := k.lagging()
	return max(math.Abs(of.sooner.beyond(soonerZ)), math.Abs(of.class.beyond(soonerZ))) >= soonerLeast
}

// lastLabel is the time of the latest label of a sampled row, and the longest lag.
func (k *Key) lastLabel() (last, longest int64) {
	for i := range k.Sample {
		row := &k.Sample[i]
		last, longest = max(last, row.LabelTS), max(longest, row.LabelTS-row.TS)
	}
	return last, longest
}

// labelledBefore is the event time of the newest predictions of which most labels have come, by the lags so far, and
// whether labels have come for much longer than these.
func (k *Key) labelledBefore() (before int64, known bool) {
	last, longest := k.lastLabel()
	all := make([]int64, len(k.Sample))
	for i := range k.Sample {
		all[i] = k.Sample[i].LabelTS - k.Sample[i].TS
	}
	slices.Sort(all)
	return last - all[int(slowShare*float64(len(all)))], last-k.Began >= SettledInOrder*longest
}

// lags are the sampled rows by prediction time.
func lags(sample []acc.SampleRow) []lagged {
	at := make([]uint64, len(sample))
	ordered(at, func(i int) int64 { return sample[i].TS })
	rows := make([]lagged, len(sample))
	for i, place := range at {
		row := &sample[place]
		top, second := twoLargest(row.Z)
		rows[i] = lagged{row.LabelTS - row.TS, top - second, int32(place), row.Z[row.Y] >= top}
	}
	return rows
}

// ordered sets at to the places of as many values, from the least value on, those of equal ones in their order. Where
// the place has room in the bits below a value, numbers are sorted, which takes a quarter of the time.
func ordered(at []uint64, value func(i int) int64) {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range at {
		low, high = min(low, value(i)), max(high, value(i))
	}
	shift := bits.Len(uint(max(0, len(at)-1)))
	if bits.Len64(uint64(high)-uint64(low))+shift > 64 {
		for i := range at {
			at[i] = uint64(i)
		}
		slices.SortStableFunc(at, func(a, b uint64) int { return cmp.Compare(value(int(a)), value(int(b))) })
		return
	}
	for i := range at {
		at[i] = (uint64(value(i))-uint64(low))<<shift | uint64(i)
	}
	slices.Sort(at)
	for i := range at {
		at[i] &= 1<<shift - 1
	}
}

// rankOf is a number in the order of a float32 that is one.
func rankOf(x float32) int64 {
	b := int32(math.Float32bits(x + 0)) // -0 is 0
	if b < 0 {
		b ^= math.MaxInt32
	}
	return int64(b)
}

// twoLargest are the two largest scores.
func twoLargest(scores []float32) (top, second float32) {
	top, second = float32(math.Inf(-1)), float32(math.Inf(-1))
	for _, z := range scores {
		if z > top {
			top, second = z, top
		} else if z > second {
			second = z
		}
	}
	return top, second
}

// sooner compares wrong rows with right rows like them. The rows are in the order of time.
func sooner(rows []lagged) difference {
	var off, variance, pairs float64
	var room [lagTime]uint64
	var stratum [lagRows]lagged
	for near := range slices.Chunk(rows, lagTime) {
		at := room[:len(near)]
		ordered(at, func(i int) int64 { return rankOf(near[i].margin) })
		for like := range slices.Chunk(at, lagRows) {
			for i, place := range like {
				stratum[i] = near[place]
			}
			o, v, p := rankSum(stratum[:len(like)])
			off, variance, pairs = off+o, variance+v, pairs+p
		}
	}
	if pairs == 0 || variance == 0 {
		return difference{}
	}
	return difference{off / pairs, off / math.Sqrt(variance)}
}

// rankSum returns W less its mean, its variance, and the number of pairs of a wrong and a right row. Rows are at most
// lagRows.
func rankSum(rows []lagged) (off, variance, pairs float64) {
	var room [lagRows]uint64
	at := room[:len(rows)]
	ordered(at, func(i int) int64 { return rows[i].lag })
	n, wrong, ties := float64(len(rows)), 0.0, 0.0
	for from := 0; from < len(rows); {
		to, misses := from, 0.0
		for ; to < len(rows) && rows[at[to]].lag == rows[at[from]].lag; to++ {
			if !rows[at[to]].hit {
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
	return quantileOfLags(rows, hit, .5).Round(time.Second)
}

// quantileOfLags is that of the rows that are right, or wrong, of which there are some.
func quantileOfLags(rows []lagged, hit bool, q float64) time.Duration {
	var lags []int64
	for _, r := range rows {
		if r.hit == hit {
			lags = append(lags, r.lag)
		}
	}
	slices.Sort(lags)
	return time.Duration(lags[int(q*float64(len(lags)))])
}
