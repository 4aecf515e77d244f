//go:build !linux && !darwin && !freebsd

package main

func fileSystem(string) (s diskSpace, ok bool) { return s, false }
