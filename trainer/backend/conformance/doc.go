// Package conformance has the test that every backend passes. A backend's own test calls [Check]:
//
//	func TestConformance(t *testing.T) {
//		conformance.Check(t, mybackend.New(), conformance.Tolerance{Params: 1e-4, Loss: 1e-5})
//	}
//
// It makes small problems of its own ([Cases]), runs an epoch of each on the backend and on the reference, backend.Go,
// and compares losses, parameters, velocities, histories, measurements and logits. It also checks that a session goes
// on from a state with the same bits, and refuses epochs that make no sense. It knows no device.
package conformance
