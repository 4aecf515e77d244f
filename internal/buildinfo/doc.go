// Package buildinfo knows which build this process is: version, commit and platform.
//
// It reads the build information that the Go linker writes, or the version that a release build sets:
//
//	go build -ldflags "-X github.com/plumbline/plumbline/internal/buildinfo.version=v1.2.3" ./cmd/plumbline
//
// The result goes to `plumbline version`, to the status of a process and into the evidence of calibrators.
package buildinfo
