package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/bench/npy"
)

// The length of a stream in its own calendar: a day of rows is what a refit by period sees, a week what the schedule does.
const (
	paneRows   = 100
	dayRows    = 14 * paneRows
	weekRows   = 7 * dayRows
	streamRows = 5 * weekRows
)

// source is the logits of one net on some images, with their labels.
type source struct {
	name   string
	z      []float32
	k      int
	labels []int32
}

func (s *source) rows() int { return len(s.labels) }

// stream is rows in the order in which they come.
type stream struct {
	name     string
	drifting bool
	k        int
	z        []float32
	labels   []int32
	changes  []int // rows at which the stream becomes another one; none where it does so gradually
}

// changesIn reports whether the stream becomes another one within some rows.
func (s *stream) changesIn(from, to int) bool {
	return slices.ContainsFunc(s.changes, func(row int) bool { return row >= from && row < to })
}

func (s *stream) rows() int { return len(s.labels) }

// add appends row i of a source.
func (s *stream) add(from *source, i int, label int32) {
	s.z = append(s.z, from.z[i*from.k:(i+1)*from.k]...)
	s.labels = append(s.labels, label)
}

func read(dir, file string, names ...string) ([]*source, error) {
	a, err := npy.ReadArchive(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	labels := a["test_labels"].Int
	if len(names) == 0 {
		for name, x := range a {
			if len(x.Shape) == 2 {
				names = append(names, name)
			}
		}
	}
	var out []*source
	for _, name := range names {
		x := a[name]
		if len(x.F32) == 0 || x.Columns()*len(labels) != len(x.F32) {
			return nil, fmt.Errorf("%s: %s has %v values for %d labels", file, name, x.Shape, len(labels))
		}
		out = append(out, &source{name, x.F32, x.Columns(), labels})
	}
	return out, nil
}

// walk hands out the rows of a source in a random order, each as often as every other.
type walk struct {
	r    *rand.Rand
	n    int
	left []int
}

func (w *walk) next() int {
	if len(w.left) == 0 {
		w.left = w.r.Perm(w.n)
	}
	i := w.left[len(w.left)-1]
	w.left = w.left[:len(w.left)-1]
	return i
}

// mixed makes a stream of several sources: which(t) is that of the row at the share t of the stream.
func mixed(name string, seed uint64, sources []*source, gradual bool, which func(r *rand.Rand, t float64) int) *stream {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &stream{name: name, drifting: true, k: sources[0].k}
	walks := make([]walk, len(sources))
	for i := range walks {
		walks[i] = walk{r: r, n: sources[i].rows()}
	}
	last := 0
	for t := range streamRows {
		j := which(r, float64(t)/streamRows)
		if j != last && !gradual {
			s.changes = append(s.changes, t)
		}
		last = j
		i := walks[j].next()
		s.add(sources[j], i, sources[j].labels[i])
	}
	return s
}

// drifting are 20 streams of real logits with their real labels: corrupted images that come suddenly, gradually, or again
// and again, one corruption after the other, and one net that replaces another.
func drifting(dir string) ([]*stream, error) {
	names := []string{"resnet20", "resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3", "resnet20_contrast_s3", "resnet20_gauss_blur_s3", "resnet20_gauss_blur_s5"}
	jpeg, err := read(dir, "c10jpeg_resnet_logits.npz", names...)
	if err != nil {
		return nil, err
	}
	var out []*stream
	for i, bad := range jpeg[1:] {
		pair, seed := []*source{jpeg[0], bad}, uint64(i)
		// Changes know nothing of days and weeks.
		phase := .13 + .15*float64(i)
		short := bad.name[len("resnet20_"):]
		out = append(out,
			mixed("sudden "+short, 10+seed, pair, false, func(_ *rand.Rand, t float64) int { return step(t >= .3) }),
			mixed("gradual "+short, 20+seed, pair, true, func(r *rand.Rand, t float64) int { return step(r.Float64() < (t-.2)/.6) }),
			mixed("recurring "+short, 30+seed, pair, false, func(_ *rand.Rand, t float64) int { return int(t*5+phase) % 2 }))
	}
	at := func(t float64) int { return int(3 * t) }
	out = append(out,
		mixed("clean, noise 1, noise 3", 40, []*source{jpeg[0], jpeg[1], jpeg[2]}, false, func(_ *rand.Rand, t float64) int { return at(t) }),
		mixed("clean, blur 3, blur 5", 41, []*source{jpeg[0], jpeg[4], jpeg[5]}, false, func(_ *rand.Rand, t float64) int { return at(t) }))
	nets, err := read(dir, "c10_chenyaofo19_logits.npz", "resnet20", "mobilenetv2_x1_0", "vgg16_bn")
	if err != nil {
		return nil, err
	}
	for i, n := range nets {
		out = append(out, mixed(fmt.Sprintf("%s, then the weak net", n.name), 50+uint64(i), []*source{n, jpeg[0]}, false, func(_ *rand.Rand, t float64) int { return step(t >= .43) }))
	}
	return out, nil
}

func step(on bool) int {
	if on {
		return 1
	}
	return 0
}

// stationary are 20 streams of real logits whose labels are drawn from their recalibrated probabilities, so that nothing
// ever changes: half of them as calibrated as can be, the others as wrong as the net is.
func stationary(dir string) ([]*stream, error) {
	sources, err := read(dir, "c10_chenyaofo19_logits.npz")
	if err != nil {
		return nil, err
	}
	weak, err := read(dir, "c10_resnet18_78acc_wasscal_logits.npz", "test_logits")
	if err != nil {
		return nil, err
	}
	sources = append(sources, weak...)
	sortByName(sources)
	var out []*stream
	for i, src := range sources {
		s, err := resampled(src, uint64(60+i), i%2 == 0)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// resampled draws the labels of a stream from softmax(z/T) with the source's own best T; where it is to be calibrated, its
// logits are divided by T too.
func resampled(src *source, seed uint64, calibrated bool) (*stream, error) {
	t, _, err := calibrator.FitTemperature(src.z, src.k, src.labels, nil, calibrator.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.name, err)
	}
	name := src.name + " as it is"
	z := src.z
	if calibrated {
		name = src.name + " calibrated"
		z = make([]float32, len(src.z))
		for i, x := range src.z {
			z[i] = float32(float64(x) / t.T())
		}
	}
	shown := &source{src.name, z, src.k, src.labels}
	r := rand.New(rand.NewPCG(seed, 2))
	s := &stream{name: name, k: src.k}
	w := walk{r: r, n: src.rows()}
	row, p := make([]float64, src.k), make([]float64, src.k)
	for range streamRows {
		i := w.next()
		for j := range row {
			row[j] = float64(src.z[i*src.k+j])
		}
		t.Apply(p, row)
		s.add(shown, i, draw(r, p))
	}
	return s, nil
}

func draw(r *rand.Rand, p []float64) int32 {
	u := r.Float64()
	for j, x := range p {
		if u -= x; u < 0 {
			return int32(j)
		}
	}
	best := 0
	for j := range p {
		if p[j] > p[best] || math.IsNaN(p[best]) {
			best = j
		}
	}
	return int32(best)
}
