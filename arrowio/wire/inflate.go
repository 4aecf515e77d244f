package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Inflater decompresses buffers within a budget of bytes by message. A nil Inflater refuses compressed
// bodies: the length prefix of 16 bytes may ask for gigabytes, and Kafka compresses messages better.
type Inflater struct {
	// Budget is what is left of the bytes that a message may expand to; the caller sets it anew for each.
	Budget int64
	zstd   *zstd.Decoder
}

// Codecs of BodyCompression in Message.fbs.
const (
	codecLZ4  = 0
	codecZstd = 1
)

// maxRatio is more than what a byte can expand to, by codec: a byte of an LZ4 length adds 255, and a zstd block of 4
// bytes has at most 128 KiB. A longer declared length is a lie, found before the memory for it is taken.
var maxRatio = [2]int64{256, 1 << 15}

func (z *Inflater) inflate(codec int, b []byte) ([]byte, error) {
	if z == nil {
		return nil, Errorf(Compressed,
			"record batch body is compressed, which is not enabled; compress in Kafka instead")
	}
	if len(b) < 8 {
		return nil, Errorf(Compressed, "compressed buffer of %d bytes has no length prefix", len(b))
	}
	size := int64(binary.LittleEndian.Uint64(b))
	if size == -1 {
		return b[8:], nil
	}
	if size < 0 || size > z.Budget {
		return nil, Errorf(TooLarge, "buffer that expands to %d bytes, %d are left to the message", size, z.Budget)
	}
	if most := maxRatio[codec&1] * int64(len(b)); size > most {
		return nil, Errorf(Compressed, "buffer of %d bytes that expands to %d, at most %d is possible", len(b), size,
			most)
	}
	z.Budget -= size
	switch codec {
	case codecLZ4:
		return z.lz4(b[8:], int(size))
	case codecZstd:
		return z.zst(b[8:], int(size))
	}
	return nil, Errorf(Compressed, "compression codec %d, known are lz4 (0) and zstd (1)", codec)
}

func (z *Inflater) lz4(b []byte, size int) ([]byte, error) {
	r := lz4.NewReader(bytes.NewReader(b))
	out := make([]byte, size)
	if n, err := io.ReadFull(r, out); err != nil {
		return nil, Errorf(Compressed, "lz4: %d of %d bytes: %v", n, size, err)
	}
	var more [1]byte
	if n, err := r.Read(more[:]); n != 0 || !errors.Is(err, io.EOF) {
		return nil, Errorf(Compressed, "lz4: more than the declared %d bytes", size)
	}
	return out, nil
}

func (z *Inflater) zst(b []byte, size int) ([]byte, error) {
	if z.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, Errorf(Compressed, "zstd: %v", err)
		}
		z.zstd = d
	}
	out, err := z.zstd.DecodeAll(b, make([]byte, 0, size))
	if err != nil {
		return nil, Errorf(Compressed, "zstd: %v", err)
	}
	if len(out) != size {
		return nil, Errorf(Compressed, "zstd: %d bytes where %d are declared", len(out), size)
	}
	return out, nil
}
