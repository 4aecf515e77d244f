//go:build !purego

package kernel

var pathNames = map[path]string{pathGo: "go", pathNEON: "neon"}
