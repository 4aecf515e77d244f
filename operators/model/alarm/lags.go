package alarm

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// What to think of an alert where labels may be no fair sample of all rows (stage.SoonerWhenWrong, stage.Withheld), or
// none of these rows. Where labels come sooner for one class, such as frauds, there are at first no lags to compare:
// then only the predictions without a label tell.

const (
	// oneClass is the share of labels that one class has where labels of others have hardly begun to come.
	oneClass = .9
	// surprising is how many standard deviations off a count must be.
	surprising = 5
	// unrelatedRows is the least number of rows of which unrelated says something.
	unrelatedRows = 200
	// unrelatedConfidence is by how much the mean confidence of such rows exceeds what chance gives.
	unrelatedConfidence = .3
)

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
	sc, p := stage.NewScorer(k.K), make([]float64, k.K)
	for _, row := range rows {
		if _, err := sc.Row(nil, row, math.Inf(1)); err != nil {
			return ""
		}
		sc.Probs(p)
		expected, variance = expected+p[class], variance+p[class]*(1-p[class])
	}
	if float64(of[class])-expected <= surprising*math.Sqrt(variance) {
		return ""
	}
	covered, err := k.Covered(since, to)
	if err != nil || 2*covered.Labelled >= covered.Predictions {
		return ""
	}
	return fmt.Sprintf("nearly all labels of predictions since the start were of class %d (%d of %d, where the model "+
		"expects %.0f), and %.0f %% of these predictions had none yet: if labels of that class come sooner, this "+
		"alert is of the delay (alarm.matured)", class, of[class], len(rows), expected,
		100*(1-float64(covered.Labelled)/float64(covered.Predictions)))
}

// warn adds to the message of an alert that fires on a whole version what to think of it. Where there is nothing to say
// now, what the message before said remains, with its time: it still tells why the alert fired.
func (t *Stage) warn(k *stage.Key, a *record.Alert, before string) {
	if k.Slice != "" || a.State != stage.Firing {
		return
	}
	_, said, warned := strings.Cut(before, warning)
	switch text := t.toThink(k, a.Since.UnixNano(), said); {
	case text != "":
		a.Message += warning + a.At.String() + " " + text
	case warned:
		a.Message += warning + said
	}
}

// toThink is the first of what stage.SoonerWhenWrong, oneClassFirst, stage.Withheld, unrelated and repeated say of the
// rows since an event time. Rows that have matured have no late labels; and once lags have been seen to depend on the
// outcome, that explains what the others would say.
func (t *Stage) toThink(k *stage.Key, since int64, said string) string {
	if t.cfg.Matured == 0 {
		if text := stage.SoonerWhenWrong(k); text != "" {
			return text
		}
		if strings.Contains(said, stage.SoonerText) {
			return ""
		}
		if text := oneClassFirst(k, since); text != "" {
			return text
		}
		if text, _ := stage.Withheld(k, since); text != "" { // an error is of a row that no test takes
			return text
		}
	}
	if text := unrelated(k, since); text != "" {
		return text
	}
	return repeated(k, since)
}

// warning begins what warn adds, before the time.
const warning = ". At "

// unrelated says that the labels since an event time agree with the predictions no more often than if they were of
// other rows, although the model is sure; else "". With n_c of n rows predicted and m_c labelled as c:
//
//	q = Σ n_c m_c/n²,  accuracy ≤ q + 5 √(q(1-q)/n),  mean confidence ≥ q + .3
func unrelated(k *stage.Key, since int64) string {
	predicted, labelled := make([]float64, k.K), make([]float64, k.K)
	var n, right, conf float64
	sc := stage.NewScorer(k.K)
	for i := range k.Sample {
		row := &k.Sample[i]
		if row.TS < since {
			continue
		}
		s, err := sc.Row(nil, row, math.Inf(1))
		if err != nil {
			return ""
		}
		n, conf = n+1, conf+s.Confidence
		predicted[s.Class]++
		labelled[row.Y]++
		if s.Hit {
			right++
		}
	}
	chance := 0.0
	for c, p := range predicted {
		chance += p / n * labelled[c] / n
	}
	if n < unrelatedRows || right/n > chance+surprising*math.Sqrt(chance*(1-chance)/n) ||
		conf/n < chance+unrelatedConfidence {
		return ""
	}
	return fmt.Sprintf("labels of %.0f predictions since the start agree with them no more often than labels of other "+
		"rows would (%.3f, by chance %.3f): see whether labels have the ids of their predictions and classes the "+
		"order of the scores", n, right/n, chance)
}
