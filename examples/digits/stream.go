package digits

import (
	"math/rand/v2"
	"strconv"
)

// StreamOptions configure a Stream.
type StreamOptions struct {
	Seed    uint64
	ShiftAt int64 // first row whose image is changed by Shift; negative = never
	Shift   Shift // the zero value = Drift
}

// Row is one answer of the network.
type Row struct {
	ID       string
	Logits   [Classes]float32
	Features [Hidden]float32
	Label    int32
	Device   string // "A" or "B", by a hash of the row's number
	Shifted  bool
}

// Stream is the endless sequence of rows. Row i depends on the options and i alone. One goroutine calls it.
type Stream struct {
	net  *Network
	set  Set
	opts StreamOptions

	next  int64
	order []int // of the images in the present pass
	pcg   rand.PCG
	rng   *rand.Rand
}

// NewStream returns the stream of net's answers to the images of set: all of them in random order, then again in
// another, each time augmented anew. It panics if set is empty.
func NewStream(net *Network, set Set, opts StreamOptions) *Stream {
	if len(set.Images) == 0 {
		panic("digits: stream of an empty set")
	}
	if opts.Shift == (Shift{}) {
		opts.Shift = Drift
	}
	s := &Stream{net: net, set: set, opts: opts}
	s.rng = rand.New(&s.pcg)
	return s
}

// Next overwrites row with the next one.
func (s *Stream) Next(row *Row) {
	i := s.next
	s.next++
	n := int64(len(s.set.Images))
	if i%n == 0 {
		s.order = rand.New(rand.NewPCG(mix(s.opts.Seed, uint64(i/n)), streamOrder)).Perm(int(n))
	}
	image := s.order[i%n]
	s.pcg.Seed(s.opts.Seed, uint64(i))
	change := Augment
	row.Shifted = s.opts.ShiftAt >= 0 && i >= s.opts.ShiftAt
	if row.Shifted {
		change = s.opts.Shift
	}
	img := change.Apply(&s.set.Images[image], s.rng)
	features, logits := s.net.Forward(&img)
	for k, v := range logits {
		row.Logits[k] = float32(v)
	}
	for j, v := range features {
		row.Features[j] = float32(v)
	}
	row.ID = "digit-" + strconv.FormatInt(i, 10)
	row.Label = s.set.Labels[image]
	row.Device = string(rune('A' + mix(s.opts.Seed+streamDevice, uint64(i))>>63))
}

// mix hashes a number under a seed: the finaliser of SplitMix64.
func mix(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
