package cuda

import (
	"fmt"
	"unsafe"
)

// alloc returns n bytes of device memory, whose contents are undefined; close frees it.
func (d *device) alloc(what string, n int) (uint64, error) {
	var at uint64
	// A driver refuses 0 bytes.
	if err := d.check(fmt.Sprintf("%d bytes for %s", n, what), d.MemAlloc(&at, uint64(max(n, 1)))); err != nil {
		return 0, err
	}
	d.memory = append(d.memory, at)
	return at, nil
}

// zeroed is alloc with zeros.
func (d *device) zeroed(what string, n int) (uint64, error) {
	at, err := d.alloc(what, n)
	if err != nil {
		return 0, err
	}
	return at, d.check("zeros", d.MemSet(at, 0, uint64(max(n, 1)), d.stream))
}

// release frees device memory before close.
func (d *device) release(at uint64) error {
	for i, a := range d.memory {
		if a == at {
			d.memory = append(d.memory[:i], d.memory[i+1:]...)
			return d.check("free", d.MemFree(at))
		}
	}
	return nil
}

// hostAlloc returns pinned memory, which asynchronous copies need.
func (d *device) hostAlloc(n int) ([]byte, error) {
	var at unsafe.Pointer
	if err := d.check(fmt.Sprintf("%d bytes of pinned memory", n), d.HostAlloc(&at, uint64(max(n, 1)), 0)); err != nil {
		return nil, err
	}
	d.pinned = append(d.pinned, at)
	return unsafe.Slice((*byte)(at), n), nil
}

// put copies bytes to the device and waits.
func (d *device) put(to uint64, from []byte) error {
	for len(from) > 0 {
		n := copy(d.stage, from)
		r := d.ToDevice(to, unsafe.Pointer(&d.stage[0]), uint64(n), d.stream)
		if err := d.check("copy to device", r); err != nil {
			return err
		}
		if err := d.sync(); err != nil {
			return err
		}
		to, from = to+uint64(n), from[n:]
	}
	return nil
}

// get copies bytes from the device and waits.
func (d *device) get(to []byte, from uint64) error {
	for len(to) > 0 {
		n := min(len(to), len(d.stage))
		r := d.ToHost(unsafe.Pointer(&d.stage[0]), from, uint64(n), d.stream)
		if err := d.check("copy from device", r); err != nil {
			return err
		}
		if err := d.sync(); err != nil {
			return err
		}
		copy(to, d.stage[:n])
		to, from = to[n:], from+uint64(n)
	}
	return nil
}

func (d *device) newEvent() (uintptr, error) {
	var e uintptr
	if err := d.check("event", d.EventCreate(&e, eventNoTiming)); err != nil {
		return 0, err
	}
	d.events = append(d.events, e)
	return e, nil
}
