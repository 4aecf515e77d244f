package plan

import "math"

// curve is a function by some of its points, in rising order of x; between and beyond them it is a power of x.
type curve []struct{ x, y float64 }

func (c curve) at(x float64) float64 {
	i := 1
	for i < len(c)-1 && x > c[i].x {
		i++
	}
	a, b := c[i-1], c[i]
	return a.y * math.Pow(max(x, 1)/a.x, math.Log(b.y/a.y)/math.Log(b.x/a.x))
}
