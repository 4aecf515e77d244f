//go:build arm64 || loong64 || ppc64le || riscv64 || s390x

package kernel

// fma32 returns a·b + c rounded once: on these the compiler makes one instruction of a float32 product and a sum. The
// golden hash of the tests, which `make portable` runs for them, would see it if it did not.
func fma32(a, b, c float32) float32 { return a*b + c }
