package recordset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

var errInflates = errors.New("inflates")

// open returns the decompressed body.
func open(codec uint16, body []byte, limit int64) (*source, error) {
	switch c := compress.Compression(codec); c { //nolint:gosec // three bits
	case 0:
		return flat(body), nil
	case compress.Gzip, compress.Lz4: // their windows are of 32 KiB and 8 MiB
		r := c.Codec().NewReader(bytes.NewReader(body))
		return inflated(r, func() { _ = r.Close() }, limit), nil
	case compress.Snappy:
		return inflated(newSnappy(body, limit), nil, limit), nil
	case compress.Zstd:
		return openZstd(body, limit)
	}
	return nil, fmt.Errorf("codec %d, known are 0 to 4", codec)
}

// zstdWindow is the largest window of zstd that is held. Level 22 names one of 128 MiB.
const (
	zstdWindow    = 32 << 20
	zstdWindowLog = 25
)

var decoders sync.Pool

func openZstd(body []byte, limit int64) (*source, error) {
	in := narrowed(body)
	d, _ := decoders.Get().(*zstd.Decoder)
	if d == nil {
		var err error
		if d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow)); err != nil {
			return nil, err
		}
	}
	free := func() {
		if d.Reset(nil) == nil {
			decoders.Put(d)
		}
	}
	if err := d.Reset(in); err != nil {
		free()
		return nil, zstdError(err)
	}
	return inflated(named{d}, free, limit), nil
}

// named gives errors of zstd our words.
type named struct{ r io.Reader }

func (n named) Read(b []byte) (int, error) {
	k, err := n.r.Read(b)
	return k, zstdError(err)
}

func zstdError(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return fmt.Errorf("zstd %w: a window of more than %d bytes", errInflates, zstdWindow)
	}
	return err
}

// narrowed lets a frame that names a larger window make do with ours. The content is the same as long as nothing in it
// refers further back, which no batch of a common size can.
func narrowed(body []byte) io.Reader {
	const (
		descriptorAt  = 4
		windowAt      = 5
		singleSegment = 1 << 5
		logLeast      = 10
	)
	if len(body) > windowAt && body[descriptorAt]&singleSegment == 0 && body[windowAt]>>3 > zstdWindowLog-logLeast {
		first := bytes.Clone(body[:windowAt+1])
		first[windowAt] = (zstdWindowLog - logLeast) << 3
		return io.MultiReader(bytes.NewReader(first), bytes.NewReader(body[windowAt+1:]))
	}
	return struct{ io.Reader }{bytes.NewReader(body)} // a stream: it is not decoded at once
}

// xerialMagic begins the framing that the Java client uses: after it and two versions come blocks with their sizes.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHead = 16

// snappyReader decodes block by block; a body without framing is one block.
type snappyReader struct {
	blocks []byte
	framed bool
	limit  int64
	out    []byte
	buf    []byte
}

func newSnappy(body []byte, limit int64) *snappyReader {
	r := &snappyReader{blocks: body, limit: limit}
	if r.framed = len(body) >= xerialHead && bytes.HasPrefix(body, xerialMagic); r.framed {
		r.blocks = body[xerialHead:]
	}
	return r
}

func (s *snappyReader) Read(b []byte) (int, error) {
	for len(s.out) == 0 {
		if len(s.blocks) == 0 {
			return 0, io.EOF
		}
		if err := s.block(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.out)
	s.out = s.out[n:]
	return n, nil
}

func (s *snappyReader) block() error {
	in := s.blocks
	if s.framed {
		const sizeBytes = 4
		if len(in) < sizeBytes {
			return errEnd
		}
		size := int64(binary.BigEndian.Uint32(in))
		if in = in[sizeBytes:]; size > int64(len(in)) {
			return errEnd
		}
		in = in[:size]
		s.blocks = s.blocks[sizeBytes+size:]
	} else {
		s.blocks = nil
	}
	n, err := snappy.DecodedLen(in)
	if err != nil {
		return err
	}
	if int64(n) > s.limit {
		return fmt.Errorf("a block of snappy %w to %d bytes, allowed are %d", errInflates, n, s.limit)
	}
	const mostRatio = 64 // a copy of 64 bytes takes two or three
	if n > mostRatio*len(in) {
		return fmt.Errorf("a block of snappy that says %d bytes in %d", n, len(in))
	}
	s.buf, err = snappy.Decode(s.buf[:cap(s.buf)], in)
	s.out = s.buf
	return err
}
