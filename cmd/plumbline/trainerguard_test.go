package main

import (
	"context"
	"os"
	"testing"
)

// TestMain makes a guard of this program where it has started itself as one, as plumbline does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "trainer" && os.Args[2] == "guard" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
