// Package cuda trains heads on NVIDIA devices. It calls CUDA's driver API by purego, without cgo: a build needs no
// CUDA, and the same binary runs where there is no device. There Open returns backend.ErrUnsupported and the caller
// takes another backend:
//
//	s, err := new(cuda.Backend).Open(problem)
//	if errors.Is(err, backend.ErrUnsupported) {
//		s, err = backend.Go{}.Open(problem)
//	}
//
// It knows devices, kernels and their launches. It must not know recipes, jobs or files. A backend.Problem comes from
// the caller; parameters, losses and measurements go back through backend.Session.
//
// Kernels are in kernels/, plain C++ that needs no CUDA headers. `make ptx` (clang) compiles them to kernels.ptx, which
// is embedded; the driver compiles it for its device. cuBLAS multiplies where it is found, and the package's own
// kernels otherwise.
//
// What a session does:
//
//  1. Open puts parameters, labels and features on the device: float16 stays float16, an array that several sets view
//     is there once. Sets that do not fit are streamed: the host gathers the next mini-batch into pinned memory while
//     the device works on this one.
//  2. An epoch's rows, rates and masks' seeds go to the device once. A step (gather, masks, products, loss and
//     gradient, update) is recorded as a graph when it comes the second time, and replayed: one call a step. The device
//     reads what changes from step to step in struct Epoch.
//  3. Masks come from the same Philox words as package philox; the reference computes the same ones.
//
// Cross-entropy, squared, smoothing, focal, flsd53, inverse and dual focal, the entropy penalty, sums of up to four of
// them, and detached au over one of them are computed by the kernels. For all other losses the logits are copied to the
// host, package loss computes, and the gradient is copied back: correct, but the device waits at every step.
//
// Results are the reference's up to float32 rounding, and the same bits for the same device and library: no sum
// depends on the order in which threads run.
//
// Backend.Precision says how cuBLAS multiplies. Without it, devices whose tensor cores do three TF32 products sooner
// than the other cores do one in float32 take TF32x3: each float32 is the sum of two TF32 numbers. float16 features are
// TF32 numbers already, so that theirs are two products.
//
// `make cuda-fake` runs this package's tests on a stand-in for the driver and cuBLAS (testdata/fakecuda). It runs the
// committed PTX, translated to C++ by command ptx, and ends a launch at an access out of bounds, a misaligned one, a
// race, a read of what nobody wrote, barriers that not all threads reach, and a loop without end. TestMutants changes
// instructions one at a time and counts what the tests notice. gpu_check.sh runs tests, compute-sanitizer and timings
// on a device.
//
// A context belongs to a thread of the operating system, so each session has one locked thread of its own.
package cuda
