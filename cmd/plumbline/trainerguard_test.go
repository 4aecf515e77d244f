package main

import (
	"context"
	"os"
	"testing"
)

// TestMain makes a guard of this program where it has started itself as one, as plumbline does.
// asCommand is set where the test's program is to be the command itself.
const asCommand = "PLUMBLINE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Unsetenv(asCommand)
		main()
	}
	if len(os.Args) > 2 && os.Args[1] == "trainer" && os.Args[2] == "guard" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
