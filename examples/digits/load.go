package digits

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
)

// The shape of the data.
const (
	Side    = 8           // pixels a row and column
	Pixels  = Side * Side // input of the network
	Classes = 10
)

// grey is the darkest pixel value in the file.
const grey = 16

//go:embed digits.bin.gz
var packed []byte

// Image is row-major grey values in [0, 1], 1 = ink.
type Image [Pixels]float64

// Set is labelled images; Labels are in [0, Classes).
type Set struct {
	Images []Image
	Labels []int32
}

// Load unpacks the embedded images.
func Load() (Set, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Set{}, fmt.Errorf("unpack digits: %w", err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return Set{}, fmt.Errorf("unpack digits: %w", err)
	}
	if len(raw) < 8 || string(raw[:4]) != "DIG1" {
		return Set{}, fmt.Errorf("unpack digits: %d bytes without the magic DIG1", len(raw))
	}
	n := int(binary.LittleEndian.Uint32(raw[4:]))
	raw = raw[8:]
	if len(raw) != n*(1+Pixels) {
		return Set{}, fmt.Errorf("unpack digits: %d bytes for %d images, want %d", len(raw), n, n*(1+Pixels))
	}
	s := Set{Images: make([]Image, n), Labels: make([]int32, n)}
	for i := range n {
		s.Labels[i] = int32(raw[i])
		for j, v := range raw[n+i*Pixels : n+(i+1)*Pixels] {
			s.Images[i][j] = float64(v) / grey
		}
	}
	return s, nil
}

// Split deals the images into two halves at random by seed.
func (s Set) Split(seed uint64) (train, held Set) {
	order := rand.New(rand.NewPCG(seed, streamSplit)).Perm(len(s.Images))
	half := len(order) / 2
	return s.pick(order[:half]), s.pick(order[half:])
}

func (s Set) pick(index []int) Set {
	var t Set
	for _, i := range index {
		t.Images = append(t.Images, s.Images[i])
		t.Labels = append(t.Labels, s.Labels[i])
	}
	return t
}

// The second word of a PCG seed, so that the uses of one seed are unrelated. Rows of the stream use their number.
const (
	streamSplit = 1<<63 + iota
	streamTrain
	streamOrder
	streamDevice
)
