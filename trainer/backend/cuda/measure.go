package cuda

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/philox"
)

// each runs the head as viewed by w over a set, and calls f when the logits of a chunk are in the stream.
func (s *session) each(set int, w backend.Weights, f func(src *source, from, n int) error) error {
	src, ok := s.sourceOf(set)
	if !ok {
		return fmt.Errorf("set %d, allowed %d..%d", set, backend.TrainSet, len(s.p.Eval)-1)
	}
	weights, err := s.viewed(w)
	if err != nil {
		return err
	}
	for from := 0; from < src.set.N(); from += s.rows {
		n := min(s.rows, src.set.N()-from)
		in := batchOf{source: src, from: from}
		if src.slab == 0 {
			in.slot = &s.slots[from/s.rows%2]
			rows := data.Rows(n)
			for i := range rows {
				rows[i] += int32(from)
			}
			if err := s.send(in.slot, src, rows, nil); err != nil {
				return err
			}
		}
		if err := s.input(in, n); err != nil {
			return err
		}
		if err := s.used(in.slot); err != nil {
			return err
		}
		if err := s.forward(weights, n); err != nil {
			return err
		}
		if err := f(src, from, n); err != nil {
			return err
		}
	}
	return s.finite()
}

// viewed returns the weights that a measurement sees.
func (s *session) viewed(w backend.Weights) (uint64, error) {
	p := epochParams{}
	if w.Mask != nil {
		p.Seed, p.Threshold, p.First = w.Mask.Seed, philox.Threshold(w.Mask.Keep), w.Mask.FirstStep
	}
	if err := s.put(s.still, bytesOf([]epochParams{p})); err != nil {
		return 0, err
	}
	switch {
	case w.Mask != nil:
		return s.view, s.applyMasks(s.still)
	case w.Scale != 0 && w.Scale != 1:
		return s.view, s.launch(scaled, elements(s.size), num(s.size), real32(w.Scale), ptr(s.params), ptr(s.view))
	}
	return s.params, nil
}

// finite returns ErrDiverged where a measured logit was not.
func (s *session) finite() error {
	var after [1]epochParams
	if err := s.get(bytesOf(after[:]), s.still); err != nil {
		return err
	}
	if after[0].Bad != 0 {
		return fmt.Errorf("measure: a logit is not finite: %w", backend.ErrDiverged)
	}
	return nil
}

// Measure implements [backend.Session].
func (s *session) Measure(set int, w backend.Weights) (backend.Measurement, error) {
	var m backend.Measurement
	err := s.thread.do(func() error {
		var total [3]float64
		if err := s.put(s.total, bytesOf(total[:])); err != nil {
			return err
		}
		k := s.p.Head.K()
		err := s.each(set, w, func(src *source, from, n int) error {
			m.N += n
			err := s.launch(rowMeasures, eachRow(n, k),
				ptr(s.still), num(k), ptr(s.logits()), ptr(src.labels), num(from), ptr(s.values))
			if err != nil {
				return err
			}
			return s.launch(sums, grid{x: len(total), y: 1, threads: 256}, num(n), num(3), ptr(s.values), ptr(s.total))
		})
		if err != nil {
			return err
		}
		if err := s.get(bytesOf(total[:]), s.total); err != nil {
			return err
		}
		n := float64(m.N)
		m.NLL, m.Accuracy, m.Confidence = total[0]/n, total[1]/n, total[2]/n
		return nil
	})
	if err != nil {
		return backend.Measurement{}, err
	}
	return m, nil
}

// Logits implements [backend.Session].
func (s *session) Logits(set int, w backend.Weights, dst []float32) error {
	k := s.p.Head.K()
	return s.thread.do(func() error {
		return s.each(set, w, func(_ *source, from, n int) error {
			part := dst[from*k : (from+n)*k]
			if err := s.get(bytesOf(part), s.logits()); err != nil {
				return err
			}
			for i, v := range part {
				if d := v - v; d != 0 {
					return fmt.Errorf("row %d: logit %v: %w", from+i/k, v, backend.ErrDiverged)
				}
			}
			return nil
		})
	})
}
