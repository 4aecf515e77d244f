package main

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// regret is what online Platt scaling with calibeating did on a stream's top confidences, as they are or as the
// published calibrators make them: each row is forecast before its label is seen.
type regret struct {
	Mean   float64 `json:"mean"`   // log loss of Platt's map a row, less that of the best fixed map in hindsight, nats
	Excess float64 `json:"excess"` // of the calibeaten forecasts, as scored.excess
}

// onlineClip is that of calibrator.OnlinePlatt.
const onlineClip = 1e-4

// online runs it on top of calibrators that take force in turn; none = the scores as they are.
func online(s *stream, changes []change) (regret, error) {
	o, err := calibrator.NewOnlinePlatt(calibrator.OnlineSettings{Clip: onlineClip})
	if err != nil {
		return regret{}, err
	}
	var out regret
	z, p := make([]float64, s.k), make([]float64, s.k)
	var cal calibrator.Calibrator
	conf, right := make([]float64, s.rows()), make([]bool, s.rows())
	told := make([]float64, s.rows())
	loss := 0.0
	for i := range s.rows() {
		for len(changes) > 0 && changes[0].row <= i {
			cal, changes = changes[0].cal, changes[1:]
		}
		_, c, hit := apply(s, i, cal, z, p)
		conf[i], right[i] = min(max(c, onlineClip), 1-onlineClip), hit
		loss += logLoss(o.Current().Map(conf[i]), hit)
		told[i] = o.Predict(conf[i])
		if err := o.Update(conf[i], hit); err != nil {
			return out, fmt.Errorf("%s: row %d: %w", s.name, i, err)
		}
	}
	best, err := hindsight(conf, right)
	if err != nil {
		return out, fmt.Errorf("%s: %w", s.name, err)
	}
	out.Mean = (loss - best) / float64(s.rows())
	windows := 0.0
	for from := 0; from < s.rows(); from += windowRows {
		to := min(from+windowRows, s.rows())
		b := metric.EqualWidth(told[from:to], right[from:to], nil, bins)
		out.Excess += metric.ECE(b) - metric.Resample(b, 50, uint64(from)).Null
		windows++
	}
	out.Excess /= windows
	return out, nil
}

// hindsight is the least sum of log losses of a fixed map on all rows.
func hindsight(conf []float64, right []bool) (float64, error) {
	best, _, err := calibrator.FitPlattConfidence(conf, right, nil)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i, c := range conf {
		sum += logLoss(best.Map(c), right[i])
	}
	return sum, nil
}

func logLoss(p float64, right bool) float64 {
	if !right {
		p = 1 - p
	}
	return -math.Log(max(p, 0x1p-53))
}
