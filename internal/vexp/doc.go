// Package vexp computes exponentials of many float64 at once, with the same bits on every machine.
//
// The vector paths and the plain one take the same steps in the same order. Logits come from calibrators and fits,
// and the results go back to them; the package knows nothing of either. Its assembly comes from internal/asmgen/vexp.
package vexp
