//go:build !unix || solaris || aix

package kafkaio

import "os"

// tryLock cannot tell whose a file is where the system has no flock: a file of size 0 is one just made, and what
// others left is never taken, so dead members wait for their session timeout.
func tryLock(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Size() == 0
}
