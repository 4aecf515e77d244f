//go:build !amd64 || purego

package vexp

import "testing"

func eachPath(t *testing.T, f func(t *testing.T)) { t.Run("go", f) }
