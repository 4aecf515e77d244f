package kernel

// fma32 returns a·b + c rounded once: the compiler makes one instruction of a float32 product and a sum on arm64. The
// golden hashes of the tests, which `make portable` runs for arm64, would see it if it did not.
func fma32(a, b, c float32) float32 { return a*b + c }
