package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/pierrec/lz4/v4"
)

// lz4Raw is the codec LZ4_RAW, which pyarrow writes for "lz4" and the library does not have.
const lz4Raw compress.Compression = 7

// registerCodecs replaces the library's decoders by ones that write no more than a page's claimed length, which File
// bounds: a few bytes of zstd or brotli can stand for gigabytes.
var registerCodecs = sync.OnceValue(func() error {
	for c, decode := range map[compress.Compression]decoder{
		compress.Codecs.Zstd: streamed, compress.Codecs.Brotli: streamed, compress.Codecs.Gzip: streamed,
		compress.Codecs.Snappy: snappyBlock,
	} {
		codec, err := compress.GetCodec(c)
		if err != nil {
			return err
		}
		compress.RegisterCodec(c, bounded{codec, decode})
	}
	none, err := compress.GetCodec(compress.Codecs.Uncompressed)
	compress.RegisterCodec(lz4Raw, bounded{none, lz4Block})
	return err
})

// decoder decodes src into dst and returns how many bytes that were.
type decoder func(c compress.Codec, dst, src []byte) (int, error)

// bounded is a codec with another decoder.
type bounded struct {
	compress.Codec
	decode decoder
}

// Decode panics where src is broken, as the library expects it. A page of nulls may have no bytes at all.
func (c bounded) Decode(dst, src []byte) []byte {
	if len(src) == 0 && len(dst) == 0 {
		return dst
	}
	n, err := c.decode(c.Codec, dst, src)
	if err == nil && n != len(dst) {
		err = fmt.Errorf("a page of %d bytes, its header says %d", n, len(dst))
	}
	if err != nil {
		panic(err)
	}
	return dst
}

// streamed decodes what would be longer than dst no further.
func streamed(c compress.Codec, dst, src []byte) (int, error) {
	r := c.NewReader(bytes.NewReader(src))
	defer r.Close()
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	more, _ := r.Read(make([]byte, 1))
	return n + more, nil
}

func snappyBlock(c compress.Codec, dst, src []byte) (int, error) {
	if n, _ := binary.Uvarint(src); n != uint64(len(dst)) {
		return int(n & math.MaxInt32), nil
	}
	return len(c.Decode(dst, src)), nil
}

func lz4Block(_ compress.Codec, dst, src []byte) (int, error) { return lz4.UncompressBlock(src, dst) }
