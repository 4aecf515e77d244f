package archivefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Digest is a SHA-256 over those of the segments.
func (f *File) Digest() string {
	h := sha256.New()
	for _, s := range f.Segments {
		_, _ = io.WriteString(h, s.Name) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeAs writes a record under a schema with other metadata.
func writeAs(fw *ipc.FileWriter, s *arrow.Schema, rec arrow.Record) error {
	as := array.NewRecord(s, rec.Columns(), rec.NumRows())
	defer as.Release()
	return fw.Write(as)
}

// Info is what the head of an archive file says.
type Info struct {
	Model, Version string
	K              int
	Rows           int64
	Partition      int
	Sequence       uint64
	First, Last    string
	Oldest, Newest arrowio.Time
	Digest         string
	Bytes          int64 // of the file
}

// archiveHead bounds the schema message of an archive file; names of slice columns are part of it.
const archiveHead = 1 << 20

// ReadInfo reads the head of an archive file, whose bytes may be anything.
func ReadInfo(path string) (*Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the file
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(st.Size(), archiveHead))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	info, err := parseInfo(head)
	if err != nil {
		return nil, fmt.Errorf("%s is no archive file: %w", path, err)
	}
	info.Bytes = st.Size()
	return info, nil
}

func parseInfo(head []byte) (*Info, error) {
	if len(head) < len(wire.FileMagic) || string(head[:6]) != wire.FileMagic[:6] {
		return nil, wire.Errorf(wire.NotArrow, "no ARROW1 at the start of %d bytes", len(head))
	}
	m, _, end, _, err := wire.Next(head[len(wire.FileMagic):])
	if err != nil {
		return nil, err
	}
	if end {
		return nil, wire.Errorf(wire.NoSchema, "the file ends before its schema")
	}
	s, err := wire.ParseSchema(m, Limits)
	if err != nil {
		return nil, err
	}
	info := &Info{
		Model:   s.Meta[arrowio.MetaModel],
		Version: s.Meta[arrowio.MetaVersion],
		First:   s.Meta[MetaFirst],
		Last:    s.Meta[MetaLast],
		Digest:  s.Meta[MetaDigest],
	}
	number := func(key string, set func(int64)) {
		v, perr := strconv.ParseInt(s.Meta[key], 10, 64)
		if perr != nil && err == nil {
			err = fmt.Errorf("metadata %s is %q, allowed is a number", key, s.Meta[key])
		}
		set(v)
	}
	number(MetaClasses, func(v int64) { info.K = int(v) })
	number(MetaRows, func(v int64) { info.Rows = v })
	number(MetaPartition, func(v int64) { info.Partition = int(v) })
	number(MetaSequence, func(v int64) { info.Sequence = uint64(v) })
	number(MetaOldest, func(v int64) { info.Oldest = v })
	number(MetaNewest, func(v int64) { info.Newest = v })
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Limits bound the schema of a file that is read as the stream's messages are.
var Limits = wire.Limits{Fields: 4096, Depth: 16, Text: 1024, Meta: 256}
