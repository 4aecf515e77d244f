//go:build (!amd64 && !arm64) || purego

package kernel

func pathName() string { return "go" }
