//go:build faulty

package faulty

import (
	"bytes"
	"os"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// decoder panics, or ends the process, at a record that is marked.
type decoder struct{ pipeline.Decoder }

// Decoder returns d with defects.
func Decoder(d pipeline.Decoder) pipeline.Decoder { return decoder{d} }

// Decode implements pipeline.Decoder.
func (d decoder) Decode(value []byte, o arrowio.Origin, kind arrowio.Kind) ([]*arrowio.Batch, error) {
	switch {
	case bytes.Equal(value, []byte(PanicMark)):
		panic("a defect at a marked record")
	case bytes.Equal(value, []byte(ExitMark)):
		os.Exit(137)
	}
	return d.Decoder.Decode(value, o, kind)
}
