package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// stream is a set of rows in order of time, in which something drifts.
type stream struct {
	name, title string
	// held says that no decision about auto looked at it.
	held bool
	rows *data.Set
	// head is the one that serves for the whole stream; nil: at each window one that was trained on the rows before.
	head *head.Head
}

// Windows of a stream, as shares of its rows: the rows that auto is given, and those that follow. Where the stream has
// no head, one is trained on the share before.
const (
	windows      = 3
	firstWindow  = 0.20
	windowRows   = 0.24
	followRows   = 0.08
	beforeRows   = 0.20
	corruptSeed  = 3 << 32
	corruptStart = 0.3
	corruptFull  = 0.5
)

// window is a problem in time: test are the rows that follow.
func (s *stream) window(i int) (problem, error) {
	n := float64(s.rows.N())
	at := func(share float64) int { return int(share*n + 0.5) }
	start := firstWindow + float64(i)*windowRows
	view := func(from, to int) *data.Set { return s.rows.Select(data.Rows(to)[from:]) }
	end := at(start + windowRows)
	given := view(at(start), end)
	train, valid, _, err := given.Split(data.SplitConfig{})
	if err != nil {
		return problem{}, err
	}
	p := problem{in: recipe.Input{Train: given.Select(train), Valid: given.Select(valid), Current: s.head}}
	p.cal, p.test = given, view(end, at(start+windowRows+followRows))
	if p.in.Current == nil {
		p.in.Current, err = firstHead(view(at(start-beforeRows), at(start)))
	}
	return p, err
}

// firstHead is a linear head of these rows.
func firstHead(rows *data.Set) (*head.Head, error) {
	train, valid, _, err := rows.Split(data.SplitConfig{})
	if err != nil {
		return nil, err
	}
	c := recipe.CrossEntropy()
	c.Head = recipe.HeadLinear
	in := recipe.Input{Train: rows.Select(train), Valid: rows.Select(valid)}
	h, _, err := recipe.Run(context.Background(), c, in, backend.Go{GEMM: products()}, nil)
	return h, err
}

// streams are the twelve; every other one is held out.
func streams(folder string) ([]*stream, error) {
	var out []*stream
	for _, t := range []struct{ name, title, file string }{
		{"insects", "INSECTS, gradual", "drift_insects_gradual_bal.npz"},
		{"gas", "gas sensors", "drift_gas_sensor_b1-6_8_9.npz"},
		{"elec2", "electricity prices", "drift_elec2.npz"},
	} {
		rows, err := measured(filepath.Join(folder, t.file))
		if err != nil {
			return nil, err
		}
		out = append(out, &stream{name: t.name, title: t.title, rows: rows})
	}
	games, err := forecasts(filepath.Join(folder, "forecasts_538_games.npz"))
	if err != nil {
		return nil, err
	}
	images, err := corrupted(filepath.Join(folder, featureFile))
	if err != nil {
		return nil, err
	}
	out = append(append(out, games...), images...)
	for i, s := range out {
		s.held = i%2 == 1
	}
	return out, nil
}

// widest is the largest standardised feature: columns that are nearly constant at first would else be huge.
const widest = 5

// measured are raw features, each less its mean and over its deviation in the first fifth of the rows.
func measured(path string) (*data.Set, error) {
	a, err := npy.ReadArchive(path, "X", "y")
	if err != nil {
		return nil, err
	}
	x, y := a["X"], a["y"]
	s := &data.Set{D: x.Columns(), X: x.F32, Y: y.Int}
	for _, label := range s.Y {
		s.K = max(s.K, int(label)+1)
	}
	first := s.N() / 5
	for j := range s.D {
		var sum, square float64
		for i := range first {
			v := float64(s.X[i*s.D+j])
			sum, square = sum+v, square+v*v
		}
		mean := sum / float64(first)
		sd := math.Sqrt(max(square/float64(first)-mean*mean, 1e-12))
		for i := range s.N() {
			s.X[i*s.D+j] = float32(min(max((float64(s.X[i*s.D+j])-mean)/sd, -widest), widest))
		}
	}
	return s, s.Check()
}

// forecasts are published probabilities: one feature, the logit, which the head that serves hands on.
func forecasts(path string) ([]*stream, error) {
	a, err := npy.ReadArchive(path)
	if err != nil {
		return nil, err
	}
	h, err := head.Linear([]float32{0, 1}, []float32{0, 0})
	if err != nil {
		return nil, err
	}
	var out []*stream
	for _, league := range []string{"mlb", "nba", "nfl", "nhl"} {
		p, y := a[league+"_games_p1"], a[league+"_games_y1"]
		s := &data.Set{D: 1, K: 2}
		for i := range p.Shape[0] {
			v := min(max(value(p, i), 1e-3), 1-1e-3)
			s.X, s.Y = append(s.X, float32(math.Log(v/(1-v)))), append(s.Y, int32(value(y, i)))
		}
		out = append(out, &stream{name: league, title: "forecasts, " + league, rows: s, head: h})
	}
	return out, nil
}

// value is a number of an array of any type.
func value(a npy.Numbers, i int) float64 {
	switch {
	case a.F32 != nil:
		return float64(a.F32[i])
	case a.F64 != nil:
		return a.F64[i]
	}
	return float64(a.Int[i])
}

// corrupted are the features of the test images in their order, of which more and more are corrupted, then all, then
// fewer and fewer, then none.
func corrupted(path string) ([]*stream, error) {
	a, err := npy.ReadArchive(path)
	if err != nil {
		return nil, err
	}
	h, err := head.Linear(a["W"].F32, a["b"].F32)
	if err != nil {
		return nil, err
	}
	clean, y := a["test_features"], a["test_labels"].Int
	d, n := clean.Columns(), len(y)
	var out []*stream
	for _, c := range []string{"gauss_noise_s1", "gauss_noise_s3", "contrast_s3", "gauss_blur_s3", "gauss_blur_s5"} {
		bad, ok := a[c+"_f"]
		if !ok {
			return nil, fmt.Errorf("%s: no array %s_f", path, c)
		}
		src := philox.Source{Stream: philox.Stream{Seed: corruptSeed, Purpose: philox.Split}}
		x := make([]float32, 0, n*d)
		for i := range n {
			from := clean
			if src.Float64() < corruptShare(float64(i)/float64(n)) {
				from = bad
			}
			x = append(x, from.F32[i*d:(i+1)*d]...)
		}
		out = append(out, &stream{name: c, title: "CIFAR-10, " + c, head: h,
			rows: &data.Set{D: d, K: classes, X: x, Y: y}})
	}
	return out, nil
}

// corruptShare rises from 0 to 1, stays, and falls again.
func corruptShare(at float64) float64 {
	up := (at - corruptStart) / (corruptFull - corruptStart)
	down := (1 - corruptFull/2 + corruptStart/2 - at) / (corruptFull - corruptStart)
	return min(max(min(up, down), 0), 1)
}
