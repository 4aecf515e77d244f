package main

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// problem is a setting with a seed: rows that train, validate and test, the head before, and the rows that a
// calibrator of that head may be fitted on.
type problem struct {
	in   recipe.Input
	cal  *data.Set
	test *data.Set
}

// setting makes problems; a seed decides which rows train, validate and test.
type setting struct {
	name, title string
	make        func(s *source, seed uint64) (problem, error)
}

// Numbers of rows, of the issue that the tables answer.
const (
	fineTuned  = 5000 // of them, in a drift, validRows validate
	validRows  = 1000
	imbalance  = 100 // rows of the commonest class for one of the rarest
	splitSeed  = 1 << 32
	noiseSeed  = 2 << 32
	shuffleFor = 0
)

// shuffled draws an order of n rows.
func shuffled(n int, seed uint64) []int32 {
	return data.Shuffled(data.Rows(n), splitSeed+seed, shuffleFor)
}

// drifts are the corruptions of table A.
func drifts() []setting {
	var out []setting
	for _, c := range []struct{ name, title, array string }{
		{"noise_s1", "noise_s1", "gauss_noise_s1_f"}, {"contrast_s3", "contrast_s3", "contrast_s3_f"}, {"blur_s3",
			"blur_s3", "gauss_blur_s3_f"},
	} {
		out = append(out, setting{c.name, c.title, func(s *source, seed uint64) (problem, error) {
			return drifted(s.sets[c.array], s.head, seed, fineTuned-validRows, validRows), nil
		}})
	}
	return out
}

// drifted divides the rows of a corruption, which have no times: train, valid, and half of all test.
func drifted(all *data.Set, h *head.Head, seed uint64, train, valid int) problem {
	rows := shuffled(all.N(), seed)
	p := problem{in: recipe.Input{
		Train:   all.Select(rows[:train]),
		Valid:   all.Select(rows[train : train+valid]),
		Current: h,
		Mixed:   true,
	}}
	p.cal, p.test = all.Select(rows[:train+valid]), all.Select(rows[all.N()/2:])
	return p
}

// clean is table B: fineTuned rows of the network's own training set, validation and test rows of its test set.
func clean() setting {
	return setting{"clean", "clean", func(s *source, seed uint64) (problem, error) {
		return cleanOf(s.sets["train_features"], s.sets["test_features"], s.head, seed), nil
	}}
}

func cleanOf(train, test *data.Set, h *head.Head, seed uint64) problem {
	rows, held := shuffled(train.N(), seed), shuffled(test.N(), seed)
	p := problem{in: recipe.Input{
		Train:   train.Select(rows[:fineTuned]),
		Valid:   test.Select(held[:validRows]),
		Current: h,
		Mixed:   true,
	}}
	p.cal, p.test = p.in.Valid, test.Select(held[validRows:])
	return p
}

// special are the settings in which the papers' methods may have more to gain.
func special() []setting {
	var out []setting
	for _, n := range []int{250, 500, 1000} {
		out = append(out, setting{fmt.Sprintf("few_%d", n), fmt.Sprintf("contrast_s3, %d rows, a fifth validates", n),
			func(s *source, seed uint64) (problem, error) {
				return drifted(s.sets["contrast_s3_f"], s.head, seed, n-n/5, n/5), nil
			}})
	}
	for _, share := range []float64{0.2, 0.4} {
		out = append(out, setting{fmt.Sprintf("label_noise_%.0f", 100*share),
			fmt.Sprintf("contrast_s3, %.0f %% of the training labels drawn at random", 100*share),
			func(s *source, seed uint64) (problem, error) {
				p := drifted(s.sets["contrast_s3_f"], s.head, seed, fineTuned-validRows, validRows)
				relabel(p.in.Train, share, seed)
				return p, nil
			}})
	}
	out = append(out,
		setting{"tail_drift", "contrast_s3, long tail (100 : 1)", func(s *source, seed uint64) (problem, error) {
			p := drifted(s.sets["contrast_s3_f"], s.head, seed, fineTuned-validRows, validRows)
			p.in.Train = longTail(p.in.Train, fineTuned/classes)
			return p, nil
		}},
		setting{"tail_clean", "clean, long tail (100 : 1)", func(s *source, seed uint64) (problem, error) {
			p := cleanOf(s.sets["train_features"], s.sets["test_features"], s.head, seed)
			p.in.Train = longTail(s.sets["train_features"].Select(shuffled(50000, seed)), 2*fineTuned/classes)
			return p, nil
		}},
	)
	for _, b := range backboneKinds() {
		out = append(out, setting{"wide_" + b.name, "clean, 256 features, backbone " + b.title,
			func(s *source, seed uint64) (problem, error) {
				w, err := s.backboneOf(b)
				if err != nil {
					return problem{}, err
				}
				return cleanOf(w.of(s, "train_features"), w.of(s, "test_features"), w.last, seed), nil
			}})
	}
	return append(out, setting{"wide_drift", "contrast_s3, 256 features", func(s *source, seed uint64) (problem,
		error) {
		w, err := s.backboneOf(backboneKinds()[0])
		if err != nil {
			return problem{}, err
		}
		return drifted(w.of(s, "contrast_s3_f"), w.last, seed, fineTuned-validRows, validRows), nil
	}})
}

// relabel draws a new label, which may be the old one, for a share of the rows of a view that nobody else has.
func relabel(s *data.Set, share float64, seed uint64) {
	src := philox.Source{Stream: philox.Stream{Seed: noiseSeed + seed, Purpose: philox.Split}}
	for i := range s.Y {
		if draw := src.Float64(); draw < share {
			s.Y[i] = int32(float64(classes) * draw / share)
		}
	}
}

// longTail keeps most·imbalance^(−k/(K−1)) rows of class k, or all where there are fewer.
func longTail(s *data.Set, most int) *data.Set {
	left := make([]int, classes)
	for k := range left {
		left[k] = max(1, int(float64(most)*math.Pow(imbalance, -float64(k)/(classes-1))+0.5))
	}
	var kept []int32
	for i, y := range s.Y {
		if left[y] > 0 {
			left[y]--
			kept = append(kept, int32(i))
		}
	}
	return s.Select(kept)
}
