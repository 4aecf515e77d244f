//go:build !unix || solaris || aix

package workdir

import "os"

// tryLock cannot tell whose a file is where the system has no flock: a file of size 0 is one just made.
// Directories of dead processes stay.
func tryLock(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Size() > 0 {
		return false
	}
	_, err = f.WriteString("locked")
	return err == nil
}
