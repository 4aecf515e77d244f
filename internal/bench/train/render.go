package main

import "os"

func render(map[key]trial) string       { return "" }
func readSpeed(string) (string, error)  { return "", nil }
func writeSection(a, b, c string) error { return os.ErrInvalid }
