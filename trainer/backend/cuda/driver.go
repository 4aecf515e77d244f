package cuda

import "unsafe"

// driver is the part of CUDA's driver API that is used: each field is the C function of its tag, and those marked
// optional may be missing in an old driver. Device memory and handles are integers; out parameters are pointers.
type driver struct {
	// The driver, its errors, its devices.
	Init            func(flags uint32) result                            `c:"cuInit"`
	Version         func(version *int32) result                          `c:"cuDriverGetVersion"`
	ErrorName       func(r result, name **byte) result                   `c:"cuGetErrorName"`
	ErrorString     func(r result, text **byte) result                   `c:"cuGetErrorString"`
	DeviceCount     func(n *int32) result                                `c:"cuDeviceGetCount"`
	DeviceGet       func(device *int32, ordinal int32) result            `c:"cuDeviceGet"`
	DeviceName      func(name *byte, size int32, device int32) result    `c:"cuDeviceGetName"`
	DeviceAttribute func(value *int32, attribute, device int32) result   `c:"cuDeviceGetAttribute"`
	ContextRetain   func(ctx *uintptr, device int32) result              `c:"cuDevicePrimaryCtxRetain"`
	ContextRelease  func(device int32) result                            `c:"cuDevicePrimaryCtxRelease_v2"`
	ContextSet      func(ctx uintptr) result                             `c:"cuCtxSetCurrent"`
	ModuleLoad      moduleLoad                                           `c:"cuModuleLoadDataEx"`
	ModuleUnload    func(module uintptr) result                          `c:"cuModuleUnload"`
	ModuleFunction  func(f *uintptr, module uintptr, name string) result `c:"cuModuleGetFunction"`

	// Memory of the device, and pinned memory of the host.
	MemInfo   func(free, total *uint64) result                                      `c:"cuMemGetInfo_v2"`
	MemAlloc  func(p *uint64, n uint64) result                                      `c:"cuMemAlloc_v2"`
	MemFree   func(p uint64) result                                                 `c:"cuMemFree_v2"`
	HostAlloc func(p *unsafe.Pointer, n uint64, flags uint32) result                `c:"cuMemHostAlloc"`
	HostFree  func(p unsafe.Pointer) result                                         `c:"cuMemFreeHost"`
	ToDevice  func(to uint64, from unsafe.Pointer, n uint64, stream uintptr) result `c:"cuMemcpyHtoDAsync_v2"`
	ToHost    func(to unsafe.Pointer, from uint64, n uint64, stream uintptr) result `c:"cuMemcpyDtoHAsync_v2"`
	MemSet    func(to uint64, value uint8, n uint64, stream uintptr) result         `c:"cuMemsetD8Async"`

	// Streams and events.
	StreamCreate  func(stream *uintptr, flags uint32) result       `c:"cuStreamCreate"`
	StreamDestroy func(stream uintptr) result                      `c:"cuStreamDestroy_v2"`
	StreamSync    func(stream uintptr) result                      `c:"cuStreamSynchronize"`
	StreamWait    func(stream, event uintptr, flags uint32) result `c:"cuStreamWaitEvent"`
	EventCreate   func(event *uintptr, flags uint32) result        `c:"cuEventCreate"`
	EventDestroy  func(event uintptr) result                       `c:"cuEventDestroy_v2"`
	EventRecord   func(event, stream uintptr) result               `c:"cuEventRecord"`
	EventSync     func(event uintptr) result                       `c:"cuEventSynchronize"`

	// Kernels, and recorded launches of them.
	Launch           launchKernel                                            `c:"cuLaunchKernel"`
	CaptureBegin     func(stream uintptr, mode int32) result                 `c:"cuStreamBeginCapture_v2,optional"`
	CaptureEnd       func(stream uintptr, graph *uintptr) result             `c:"cuStreamEndCapture,optional"`
	GraphInstantiate func(exec *uintptr, graph uintptr, flags uint64) result `c:"cuGraphInstantiateWithFlags,optional"`
	GraphLaunch      func(exec, stream uintptr) result                       `c:"cuGraphLaunch,optional"`
	GraphDestroy     func(graph uintptr) result                              `c:"cuGraphDestroy,optional"`
	GraphExecDestroy func(exec uintptr) result                               `c:"cuGraphExecDestroy,optional"`
}

// moduleLoad takes n options and their values.
type moduleLoad func(module *uintptr, image *byte, n uint32, options *int32, values *unsafe.Pointer) result

// launchKernel takes a grid of gx×gy×gz blocks of bx×by×bz threads.
type launchKernel func(
	f uintptr,
	gx, gy, gz uint32,
	bx, by, bz uint32,
	shared uint32,
	stream uintptr,
	args, extra unsafe.Pointer,
) result

// cublas is the part of cuBLAS that is used.
type cublas struct {
	Create       func(handle *uintptr) status                            `c:"cublasCreate_v2"`
	Destroy      func(handle uintptr) status                             `c:"cublasDestroy_v2"`
	SetStream    func(handle, stream uintptr) status                     `c:"cublasSetStream_v2"`
	SetWorkspace func(handle uintptr, workspace uint64, n uint64) status `c:"cublasSetWorkspace_v2"`
	Version      func(handle uintptr, version *int32) status             `c:"cublasGetVersion_v2"`
	GemmEx       gemmEx                                                  `c:"cublasGemmEx"`
}

// gemmEx is BLAS's GEMM with a type for each matrix: at, bt, ct.
type gemmEx func(
	handle uintptr,
	ta, tb, m, n, k int32,
	alpha *float32,
	a uint64, at, lda int32,
	b uint64, bt, ldb int32,
	beta *float32,
	c uint64, ct, ldc int32,
	compute, algorithm int32,
) status

// Numbers of the driver's and cuBLAS's headers.
const (
	attributeMajor, attributeMinor = 75, 76
	attributeProcessors            = 16
	attributeKilohertz             = 13
	attributeMemoryKilohertz       = 36
	attributeMemoryBits            = 37
	streamNonBlocking              = 1
	eventNoTiming                  = 2
	captureThreadLocal             = 1
	jitErrorLog, jitErrorLogBytes  = 5, 6
	cublasFloat32                  = 0
	cublasComputeFloat32           = 68
	cublasComputeTF32              = 77
	cublasComputeBF16              = 75
	cublasDefaultAlgorithm         = -1
)
