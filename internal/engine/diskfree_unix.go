//go:build linux || darwin || freebsd

package engine

import "golang.org/x/sys/unix"

func fileSystem(dir string) (s diskSpace, ok bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return s, false
	}
	block := uint64(fs.Bsize)
	//nolint:unconvert // signed on some systems
	return diskSpace{free: uint64(max(fs.Bavail, 0)) * block, size: fs.Blocks * block}, true
}
