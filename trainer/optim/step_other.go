//go:build !amd64 || purego

package optim

func (o SGD) step(w, g, v []float32) { o.plain(w, g, v) }
