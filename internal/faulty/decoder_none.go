//go:build !faulty

package faulty

import "github.com/plumbline/plumbline/pipeline"

// Decoder returns d.
func Decoder(d pipeline.Decoder) pipeline.Decoder { return d }
