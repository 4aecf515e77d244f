//go:build !amd64 || purego

package fixedpoint

func scaledPaths() map[string]func() func() {
	return map[string]func() func(){"go": func() func() { return func() {} }}
}
