//go:build !amd64 || purego

package optim

func step(w, g, v []float32, lr, mu, l2 float32) { stepGo(w, g, v, lr, mu, l2) }
