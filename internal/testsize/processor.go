package testsize

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// Processor returns the processor time of the process so far, in steps of 10 ms: other work on the machine changes it
// less than the clock.
func Processor(tb testing.TB) time.Duration {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		tb.Skip("processor time is read from /proc: ", err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the first is the third of all
	var user, system int64
	if _, err := fmt.Sscan(string(fields[11])+" "+string(fields[12]), &user, &system); err != nil {
		tb.Fatal(err)
	}
	const tick = 10 * time.Millisecond
	return time.Duration(user+system) * tick
}
