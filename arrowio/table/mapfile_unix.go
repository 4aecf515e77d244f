//go:build unix && !solaris && !aix

package table

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// mapFile gives the bytes of a file without reading them.
func mapFile(f *os.File, size int64) (data []byte, unmap func(), err error) {
	if size == 0 || int64(int(size)) != size {
		return nil, nil, fmt.Errorf("file of %d bytes", size)
	}
	data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	return data, func() { _ = syscall.Munmap(data) }, nil
}

// catchFaults turns the fault of a file that is cut off while it is mapped into an error. The function it returns is to
// be deferred.
func catchFaults(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fmt.Errorf("read mapped file (was it cut off just now?): %v", r)
		}
	}
}
