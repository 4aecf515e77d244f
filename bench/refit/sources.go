package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/arrowio/npy"
)

// source is the logits of one net on some rows, with their labels.
type source struct {
	name   string
	z      []float32
	k      int
	labels []int32
}

func (s *source) rows() int { return len(s.labels) }

// library reads each file of the shared data once.
type library struct {
	dir   string
	mu    sync.Mutex
	files map[string][]*source
}

// get returns some sources of a file in the order of the names, or all that it has, by name.
func (l *library) get(file string, names ...string) ([]*source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, ok := l.files[file]
	if !ok {
		var err error
		if all, err = l.read(file); err != nil {
			return nil, err
		}
		if l.files == nil {
			l.files = map[string][]*source{}
		}
		l.files[file] = all
	}
	if len(names) == 0 {
		return all, nil
	}
	var out []*source
	for _, name := range names {
		i := slices.IndexFunc(all, func(s *source) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: no array %s", file, name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (l *library) read(file string) ([]*source, error) {
	switch file {
	case forecasts:
		return readForecasts(filepath.Join(l.dir, file))
	case insects, gas, elec2:
		s, err := readFrozen(l.dir, file)
		return []*source{s}, err
	}
	a, err := npy.ReadArchive(filepath.Join(l.dir, file))
	if err != nil {
		return nil, err
	}
	var out []*source
	for name, x := range a {
		if len(x.Shape) != 2 {
			continue
		}
		part, _, _ := strings.Cut(name, "_")
		labels := a["test_labels"].Int
		if part == "train" {
			labels = a["train_labels"].Int
		}
		if len(x.F32) == 0 || x.Columns()*len(labels) != len(x.F32) {
			return nil, fmt.Errorf("%s: %s has %v values for %d labels", file, name, x.Shape, len(labels))
		}
		z := x.F32
		if strings.HasSuffix(name, "_probs") {
			z = logarithms(z)
		}
		out = append(out, &source{name, z, x.Columns(), labels})
	}
	slices.SortFunc(out, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// logarithms are scores whose softmax gives probabilities back.
func logarithms(p []float32) []float32 {
	const least = 1e-12 // a probability of 0 has no logarithm
	z := make([]float32, len(p))
	for i, x := range p {
		z[i] = float32(math.Log(max(float64(x), least)))
	}
	return z
}

const (
	forecasts = "forecasts_538_games.npz"
	jpeg      = "c10jpeg_resnet_logits.npz"
	nets      = "c10_chenyaofo19_logits.npz"
	weakNet   = "c10_resnet18_78acc_wasscal_logits.npz"
	wide10    = "c10_wideresnet-16-4_netcal_probs.npz"
	nets100   = "c100_chenyaofo_logits.npz"
	wide100   = "c100_wideresnet-16-4_netcal_probs.npz"
	mnist     = "mnist_cnn_metacal.npz"
)

// readForecasts reads the published probabilities of both sides, as K = 2: a source for each league in order of dates,
// and one of all, "games".
func readForecasts(path string) ([]*source, error) {
	a, err := npy.ReadArchive(path)
	if err != nil {
		return nil, err
	}
	type game struct {
		day int32
		p   float32
		y   int32
	}
	var all []game
	var out []*source
	make2 := func(name string, games []game) *source {
		slices.SortStableFunc(games, func(a, b game) int { return int(a.day - b.day) })
		s := &source{name: name, k: 2}
		var p []float32
		for _, g := range games {
			p = append(p, 1-g.p, g.p)
			s.labels = append(s.labels, g.y)
		}
		s.z = logarithms(p)
		return s
	}
	for _, league := range []string{"mlb", "nba", "nfl", "nhl"} {
		day, p, y := a[league+"_games_day"].Int, a[league+"_games_p1"].F32, a[league+"_games_y1"].Int
		if len(day) == 0 || len(p) != len(day) || len(y) != len(day) {
			return nil, fmt.Errorf("%s: %s has %d days, %d probabilities, %d results", path, league, len(day), len(p),
				len(y))
		}
		var games []game
		for i := range day {
			games = append(games, game{day[i], p[i], y[i]})
		}
		all = append(all, games...)
		out = append(out, make2(league, games))
	}
	return append(out, make2("games", all)), nil
}
