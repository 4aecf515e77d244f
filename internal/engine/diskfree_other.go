//go:build !linux && !darwin && !freebsd

package engine

func fileSystem(string) (s diskSpace, ok bool) { return s, false }
