// Package variant trains heads that are no plain network while they learn, and one when they have: a variational last
// layer, and a learnable head balanced with a fixed simplex.
//
// [Open] gives a [backend.Session] on the CPU, so that recipes report and resume them like any other; [Session.Served]
// is what is served, layers with ReLU between. The package must not know recipes.
package variant
