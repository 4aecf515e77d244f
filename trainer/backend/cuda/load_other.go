//go:build !linux || (!amd64 && !arm64) || static

package cuda

import (
	"fmt"
	"runtime"
)

func open([]string) (handle uintptr, name string, err error) {
	return 0, "", fmt.Errorf("no cuda in this build on %s/%s, allowed are linux/amd64 and linux/arm64, not static",
		runtime.GOOS, runtime.GOARCH)
}

func bind(uintptr, any) error {
	return fmt.Errorf("no cuda in this build on %s/%s", runtime.GOOS, runtime.GOARCH)
}
