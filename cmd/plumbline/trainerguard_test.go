package main

import (
	"context"
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// asCommand is set where the test's program is to be the command itself.
const asCommand = "PLUMBLINE_TEST_AS_COMMAND"

// statusFile names the file to which the command writes /proc/self/status at its end: the peak that a parent is told
// of its child (rusage) has that of the parent in it, whose memory the child has until it is another program.
const statusFile = "PLUMBLINE_TEST_STATUS"

// TestMain makes a guard of this program where it has started itself as one, as plumbline does.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Unsetenv(asCommand)
		if file := os.Getenv(statusFile); file != "" {
			code := execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
			if status, err := os.ReadFile("/proc/self/status"); err == nil {
				_ = os.WriteFile(file, status, 0o600)
			}
			os.Exit(code)
		}
		main()
	}
	if len(os.Args) > 2 && os.Args[1] == "trainer" && os.Args[2] == "guard" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set("8") // these tests wait for brokers and processes; they compute little
	}
	os.Exit(m.Run())
}
