//go:build !amd64 || purego

package loss

func highest32(z []float32) int { return highestGo(z) }

func minus32(d []float64, z []float32, m float64) float64 { return minusGo(d, z, m) }

func total(p []float64) float64 { return totalGo(p) }

func scaled32(g []float32, p []float64, inv, w float64) { scaledGo(g, p, inv, w) }
