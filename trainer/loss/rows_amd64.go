//go:build amd64 && !purego

package loss

import "golang.org/x/sys/cpu"

var hasAVX = cpu.X86.HasAVX

// highest8 is the place of the largest of n values, a multiple of 8 and not 0: the lowest of ties. Where one is NaN it
// may be n.
//
//go:noescape
func highest8(z *float32, n int) int

// minus8 writes z − m to d, n values, a multiple of 8 and not 0, and returns the sum of what it wrote.
//
//go:noescape
func minus8(d *float64, z *float32, n int, m float64) float64

// total4 adds n values, a multiple of 4 and not 0, by four sums.
//
//go:noescape
func total4(sums *[4]float64, p *float64, n int)

// scaled8 writes w·(p·inv) to grad, n values, a multiple of 8 and not 0.
//
//go:noescape
func scaled8(grad *float32, p *float64, n int, inv, w float64)

// highest32 is highestGo, by vectors where the processor has them.
func highest32(z []float32) int {
	n := len(z) &^ 7
	if !hasAVX || n == 0 {
		return highestGo(z)
	}
	top := highest8(&z[0], n)
	if top == n { // a NaN: any place will do
		return 0
	}
	for k := n; k < len(z); k++ {
		if z[k] > z[top] {
			top = k
		}
	}
	return top
}

// minus32 is minusGo, by vectors where the processor has them; the sum is of another order.
func minus32(d []float64, z []float32, m float64) float64 {
	n := len(z) &^ 7
	if !hasAVX || n == 0 {
		return minusGo(d, z, m)
	}
	return minus8(&d[0], &z[0], n, m) + minusGo(d[n:], z[n:], m)
}

// total is totalGo, by vectors where the processor has them.
func total(p []float64) float64 {
	n := len(p) &^ 3
	if !hasAVX || n == 0 {
		return totalGo(p)
	}
	var s [4]float64
	total4(&s, &p[0], n)
	for _, v := range p[n:] {
		s[0] += v
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// scaled32 is scaledGo, by vectors where the processor has them.
func scaled32(g []float32, p []float64, inv, w float64) {
	n := len(p) &^ 7
	if hasAVX && n > 0 {
		scaled8(&g[0], &p[0], n, inv, w)
		g, p = g[n:], p[n:]
	}
	scaledGo(g, p, inv, w)
}
