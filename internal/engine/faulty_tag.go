//go:build faulty

package engine

import (
	"bytes"
	"os"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// Marks of records at which a build for tests has a defect.
var (
	panicMark = []byte("plumbline-test-panic")
	exitMark  = []byte("plumbline-test-exit")
)

// faultyDecoder panics, or ends the process, at a record that is marked.
type faultyDecoder struct{ pipeline.Decoder }

func faulty(d pipeline.Decoder) pipeline.Decoder { return faultyDecoder{d} }

// Decode implements pipeline.Decoder.
func (d faultyDecoder) Decode(value []byte, o arrowio.Origin, kind arrowio.Kind) ([]*arrowio.Batch, error) {
	switch {
	case bytes.Equal(value, panicMark):
		panic("a defect at a marked record")
	case bytes.Equal(value, exitMark):
		os.Exit(137)
	}
	return d.Decoder.Decode(value, o, kind)
}
