//go:build !linux || (!amd64 && !arm64)

package cuda

import (
	"fmt"
	"runtime"
)

func open([]string) (handle uintptr, name string, err error) {
	return 0, "", fmt.Errorf("no cuda on %s/%s, allowed linux/amd64 and linux/arm64", runtime.GOOS, runtime.GOARCH)
}

func bind(uintptr, any) error { return fmt.Errorf("no cuda on %s/%s", runtime.GOOS, runtime.GOARCH) }
