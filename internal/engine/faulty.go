//go:build !faulty

package engine

import "github.com/plumbline/plumbline/pipeline"

// faulty is the decoder as it is. A build for tests, by the tag faulty, has defects at records that are marked.
func faulty(d pipeline.Decoder) pipeline.Decoder { return d }
