//go:build !unix || solaris || aix

package table

import (
	"io"
	"os"
)

// mapFile reads the file: there is no map here.
func mapFile(f *os.File, size int64) (data []byte, unmap func(), err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, size), data)
	return data, func() {}, err
}

func catchFaults(*error) func() { return func() {} }
