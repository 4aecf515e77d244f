package digits

import (
	"math"
	"math/rand/v2"
)

// Shift says how images are changed. The zero value leaves them as they are.
type Shift struct {
	RotateMin, RotateMax float64 // degrees, uniform between the two, to either side
	Noise                float64 // standard deviation of Gaussian noise a pixel; ink is 1
	Occlude              int     // side of a square without ink, at a random place; 0 = none
}

// Augment is the small change that every row of the stream has, so that an image that comes again is not the same row.
var Augment = Shift{RotateMax: 8, Noise: 0.08}

// Drift is the change that the demo makes: a camera that was knocked, in bad light, with a dirty lens.
var Drift = Shift{RotateMin: 8, RotateMax: 28, Noise: 0.12, Occlude: 2}

// Apply returns a changed copy of img.
func (s Shift) Apply(img *Image, rng *rand.Rand) Image {
	out := *img
	if s.RotateMax != 0 {
		angle := s.RotateMin + (s.RotateMax-s.RotateMin)*rng.Float64()
		if rng.Uint64()&1 == 1 {
			angle = -angle
		}
		out = Rotate(&out, angle)
	}
	if s.Occlude > 0 {
		free := Side - s.Occlude + 1
		out = Occlude(&out, rng.IntN(free), rng.IntN(free), s.Occlude)
	}
	if s.Noise > 0 {
		out = Noise(&out, s.Noise, rng)
	}
	return out
}

// Rotate turns img about its centre by an angle in degrees, clockwise as rows are drawn downwards, with bilinear
// interpolation. What comes from outside is 0.
func Rotate(img *Image, degrees float64) Image {
	const centre = (Side - 1) / 2.
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	var out Image
	for y := range Side {
		for x := range Side {
			dx, dy := float64(x)-centre, float64(y)-centre
			fromX := float64(cos*dx) + float64(sin*dy) + centre
			fromY := float64(cos*dy) - float64(sin*dx) + centre
			out[y*Side+x] = img.at(fromX, fromY)
		}
	}
	return out
}

// at interpolates between the four pixels around a place.
func (img *Image) at(x, y float64) float64 {
	x0, y0 := math.Floor(x), math.Floor(y)
	fx, fy := x-x0, y-y0
	pixel := func(i, j int) float64 {
		if i < 0 || j < 0 || i >= Side || j >= Side {
			return 0
		}
		return img[j*Side+i]
	}
	i, j := int(x0), int(y0)
	above := float64((1-fx)*pixel(i, j)) + float64(fx*pixel(i+1, j))
	below := float64((1-fx)*pixel(i, j+1)) + float64(fx*pixel(i+1, j+1))
	return float64((1-fy)*above) + float64(fy*below)
}

// Noise adds Gaussian noise of standard deviation sd to every pixel and clips to [0, 1].
func Noise(img *Image, sd float64, rng *rand.Rand) Image {
	out := *img
	for i := range out {
		out[i] = min(1, max(0, out[i]+float64(sd*rng.NormFloat64())))
	}
	return out
}

// Occlude takes the ink out of the side×side block whose upper left corner is (x, y).
func Occlude(img *Image, x, y, side int) Image {
	out := *img
	for j := y; j < min(y+side, Side); j++ {
		for i := x; i < min(x+side, Side); i++ {
			out[j*Side+i] = 0
		}
	}
	return out
}
