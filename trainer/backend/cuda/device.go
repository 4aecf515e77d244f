package cuda

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/plumbline/plumbline/trainer/backend"
)

// EnvLibrary names the environment variable with the path of the driver's library, for one at an unusual place.
const EnvLibrary = "PLUMBLINE_LIBCUDA"

const (
	// minVersion is CUDA 11.4, the first driver with cuGraphInstantiateWithFlags.
	minVersion = 11040
	// minMajor and minMinor are those of the architecture that kernels.ptx is made for (Turing).
	minMajor, minMinor = 7, 5
	// stageBytes is the size of the pinned memory that copies go through.
	stageBytes = 8 << 20
)

// device is one context and stream, used by one thread.
type device struct {
	*driver
	thread  *thread
	ordinal int32
	info    Info
	context uintptr
	module  uintptr
	stream  uintptr
	kernels map[string]uintptr
	frame   *frame
	stage   []byte
	memory  []uint64
	pinned  []unsafe.Pointer
	events  []uintptr
	streams []uintptr
	blas    *blas
	peaks
	parts [4]uint64 // of split operands
	exact uint64    // the operand that has no low part, or 0
}

// Info says what device is there.
type Info struct {
	Name   string `json:"name"`
	Driver string `json:"driver"` // the CUDA version that the driver supports
	Major  int    `json:"major"`  // compute capability
	Minor  int    `json:"minor"`
	Memory uint64 `json:"memory"` // bytes in all
	Free   uint64 `json:"free"`   // bytes
	// BLAS is the library that multiplies, or "own kernels".
	BLAS string `json:"blas"`
	// Precision is that of products.
	Precision string `json:"precision"`
}

// thread runs functions on one locked thread: a context belongs to a thread of the operating system.
type thread struct {
	work chan func()
	done chan struct{}
}

func startThread() *thread {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(t.done)
		for f := range t.work {
			f()
		}
	}()
	return t
}

func (t *thread) do(f func() error) error {
	answer := make(chan error, 1)
	t.work <- func() { answer <- f() }
	return <-answer
}

func (t *thread) stop() {
	close(t.work)
	<-t.done
}

// driverNames are the libraries to try.
func driverNames(library string) []string {
	if library != "" {
		return []string{library}
	}
	if env := os.Getenv(EnvLibrary); env != "" {
		return []string{env}
	}
	return []string{"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"}
}

// loadDriver binds the driver's library.
func loadDriver(library string) (*driver, error) {
	handle, name, err := open(driverNames(library))
	if err != nil {
		return nil, unsupported("no driver: %v", err)
	}
	d := &driver{}
	if err := bind(handle, d); err != nil {
		return nil, unsupported("driver %s is too old: %v", name, err)
	}
	return d, nil
}

// openDevice makes a context, loads the kernels and starts the thread that everything runs on.
func openDevice(b *Backend) (*device, error) {
	api, err := loadDriver(b.Library)
	if err != nil {
		return nil, err
	}
	d := &device{
		driver:  api,
		thread:  startThread(),
		ordinal: int32(b.Device),
		kernels: map[string]uintptr{},
		frame:   &frame{},
	}
	if err := d.thread.do(func() error { return d.start(b) }); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *device) start(b *Backend) error {
	if err := d.find(); err != nil {
		return err
	}
	if err := d.check("context", d.ContextRetain(&d.context, d.ordinal)); err != nil {
		return err
	}
	if err := d.check("context", d.ContextSet(d.context)); err != nil {
		return err
	}
	if err := d.check("memory", d.MemInfo(&d.info.Free, &d.info.Memory)); err != nil {
		return err
	}
	if err := d.load(); err != nil {
		return err
	}
	if err := d.check("stream", d.StreamCreate(&d.stream, streamNonBlocking)); err != nil {
		return err
	}
	stage, err := d.hostAlloc(stageBytes)
	if err != nil {
		return err
	}
	d.stage = stage
	if err := d.openBLAS(b.BLAS); err != nil {
		return err
	}
	return d.choosePrecision(b.Precision)
}

// find checks the versions of the driver and of the device.
func (d *device) find() error {
	if err := d.findDriver(); err != nil {
		return err
	}
	if err := d.findDevice(); err != nil {
		return err
	}
	return d.findPeaks()
}

func (d *device) findDriver() error {
	var version int32
	if err := d.check("driver version", d.Version(&version)); err != nil {
		return err
	}
	d.info.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	if version < minVersion {
		return unsupported("driver supports CUDA %s, needed %d.%d", d.info.Driver, minVersion/1000, minVersion%1000/10)
	}
	return d.check("cuInit", d.Init(0))
}

func (d *device) findDevice() error {
	var count, major, minor int32
	if err := d.check("device count", d.DeviceCount(&count)); err != nil {
		return err
	}
	if d.ordinal < 0 || d.ordinal >= count {
		return unsupported("device %d, allowed 0..%d", d.ordinal, count-1)
	}
	ordinal := d.ordinal
	if err := d.check("device", d.DeviceGet(&d.ordinal, ordinal)); err != nil {
		return err
	}
	var name [256]byte
	if err := d.check("device name", d.DeviceName(&name[0], int32(len(name)), d.ordinal)); err != nil {
		return err
	}
	d.info.Name = cString(&name[0])
	for _, a := range []struct {
		to *int32
		of int32
	}{{&major, attributeMajor}, {&minor, attributeMinor}} {
		if err := d.check("device attribute", d.DeviceAttribute(a.to, a.of, d.ordinal)); err != nil {
			return err
		}
	}
	d.info.Major, d.info.Minor = int(major), int(minor)
	if major < minMajor || major == minMajor && minor < minMinor {
		return unsupported("%s has compute capability %d.%d, needed %d.%d",
			d.info.Name, major, minor, minMajor, minMinor)
	}
	return nil
}

// load compiles the kernels for the device; the driver keeps the result in its own cache on disk.
func (d *device) load() error {
	log := make([]byte, 4096)
	text := append([]byte(image), 0)
	options := []int32{jitErrorLog, jitErrorLogBytes}
	size := uintptr(len(log))
	// The driver reads the size as the value itself, where it expects a pointer.
	values := []unsafe.Pointer{unsafe.Pointer(&log[0]), nil}
	*(*uintptr)(unsafe.Pointer(&values[1])) = size
	r := d.ModuleLoad(&d.module, &text[0], uint32(len(options)), &options[0], &values[0])
	runtime.KeepAlive(log)
	if err := d.check("kernels", r); err != nil {
		if said := strings.TrimSpace(strings.TrimRight(string(log), "\x00")); said != "" {
			return fmt.Errorf("%w: %s", err, said)
		}
		return err
	}
	for _, k := range allKernels {
		var f uintptr
		if err := d.check("kernel "+k.name, d.ModuleFunction(&f, d.module, k.name)); err != nil {
			return err
		}
		d.kernels[k.name] = f
	}
	return nil
}

// launch puts a kernel into the stream.
func (d *device) launch(k kernel, g grid, args ...arg) error {
	at := d.frame.marshal(k, args)
	r := d.Launch(d.kernels[k.name], uint32(g.x), uint32(g.y), 1, uint32(g.threads), 1, 1, 0, d.stream, at, nil)
	if r != 0 {
		return d.check("kernel "+k.name, r)
	}
	return nil
}

func (d *device) sync() error { return d.check("wait", d.StreamSync(d.stream)) }

// close frees everything, ends the thread, and returns the first error.
func (d *device) close() error {
	err := d.thread.do(d.free)
	d.thread.stop()
	return err
}

// free runs on the device's thread.
func (d *device) free() error {
	if d.context == 0 {
		return nil
	}
	var first error
	note := func(what string, r result) {
		if err := d.check(what, r); err != nil && first == nil {
			first = err
		}
	}
	streams := d.streams
	if d.stream != 0 {
		streams = append(streams, d.stream)
	}
	for _, s := range streams {
		note("wait", d.StreamSync(s))
	}
	if d.blas != nil {
		d.blas.api.Destroy(d.blas.handle)
	}
	for _, at := range d.memory {
		note("free", d.MemFree(at))
	}
	for _, at := range d.pinned {
		note("free pinned memory", d.HostFree(at))
	}
	for _, e := range d.events {
		note("free event", d.EventDestroy(e))
	}
	for _, s := range streams {
		note("free stream", d.StreamDestroy(s))
	}
	if d.module != 0 {
		note("unload", d.ModuleUnload(d.module))
	}
	note("context", d.ContextSet(0))
	note("context", d.ContextRelease(d.ordinal))
	return first
}

var _ backend.Backend = (*Backend)(nil)
