package testsize

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// HeapInUse returns the bytes that live objects take, pools apart: a second collection takes what nobody took.
func HeapInUse() float64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// Resident returns the resident memory of the process in bytes: VmRSS is that of now, VmHWM its peak.
func Resident(tb testing.TB, line string) int64 {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skip("resident memory is read from /proc: ", err)
	}
	for l := range strings.SplitSeq(string(text), "\n") {
		var kb int64
		if n, _ := fmt.Sscanf(l, line+": %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	tb.Fatalf("no %s in /proc/self/status", line)
	return 0
}
