//go:build !amd64 || purego

package vexp

func shifted(dst, x []float64, top float64) { shiftedGo(dst, x, top) }
