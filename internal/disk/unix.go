//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

func fileSystem(dir string) (s Space, ok bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return s, false
	}
	block := uint64(fs.Bsize)
	//nolint:unconvert // signed on some systems
	return Space{Free: uint64(max(fs.Bavail, 0)) * block, Size: fs.Blocks * block}, true
}
