//go:build !linux && !darwin && !freebsd

package web

import "math"

func fileLimit() uint64 { return math.MaxUint64 }
