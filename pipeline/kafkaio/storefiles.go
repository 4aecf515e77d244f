package kafkaio

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/plumbline/plumbline/internal/filesum"
	"github.com/plumbline/plumbline/pipeline"
)

// storedFile says where a checkpoint's file is stored. It is written once; later checkpoints, also of other writers,
// refer to the same chunks.
type storedFile struct {
	Name   string `json:"name"` // of package filesum
	Bytes  int64  `json:"bytes"`
	Writer string `json:"writer"`
	// Partition stays where it was when the topic gets more; never nil in memory.
	Partition *int    `json:"partition"`
	Chunks    []int64 `json:"chunks"` // offsets
}

func (f storedFile) chunkKey(key string, i int) string {
	return fmt.Sprintf("file/%s/%s/%s/%d", key, f.Name, f.Writer, i)
}

// putFiles writes the files that this process has neither written nor read. It returns where all files are, and which
// ones it wrote.
func (s *Store) putFiles(ctx context.Context, known *claims, files []pipeline.File) (table, fresh []storedFile,
	err error) {
	for _, f := range files {
		at, ok := known.files[f.Name]
		if !ok {
			at, err = s.putFile(ctx, known, f)
			fresh = append(fresh, at)
		}
		if err != nil {
			return nil, fresh, fmt.Errorf("keep file %s: %w", f.Name, err)
		}
		table = append(table, at)
	}
	return table, fresh, nil
}

func (s *Store) putFile(ctx context.Context, known *claims, f pipeline.File) (storedFile, error) {
	partition := s.place(known.key)
	at := storedFile{Name: f.Name, Bytes: f.Bytes, Writer: known.writer, Partition: &partition}
	src, err := os.Open(f.Path)
	if err != nil {
		return at, err
	}
	defer src.Close()
	buf := make([]byte, s.chunk)
	for {
		n, err := io.ReadFull(src, buf)
		if n > 0 {
			offset, werr := s.write(ctx, partition, at.chunkKey(known.key, len(at.Chunks)), buf[:n])
			if werr != nil {
				return at, werr
			}
			at.Chunks = append(at.Chunks, offset)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
}

// fetchFile copies a file to a path and checks it. From then on checkpoints may refer to it.
func (s *Store) fetchFile(ctx context.Context, known *claims, f storedFile, path string) error {
	dst, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	name, _ := hex.DecodeString(f.Name) // what is no name is that of no bytes
	sum := filesum.Like(name)
	err = s.eachChunk(ctx, *f.Partition, f.Chunks, func(i int) string { return f.chunkKey(known.key, i) },
		func(value []byte) error {
			_, err := io.MultiWriter(sum, dst).Write(value)
			return err
		})
	if err = errors.Join(err, dst.Close()); err != nil {
		return fmt.Errorf("file %s: %w", f.Name, err)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, name) {
		return fmt.Errorf("file %s: its bytes have hash %x", f.Name, got)
	}
	known.files[f.Name] = f
	return nil
}

// tableOf returns the table of files of a claim.
func (s *Store) tableOf(ctx context.Context, known *claims, c claim) ([]storedFile, error) {
	if c.Table == 0 {
		return nil, nil
	}
	if t, ok := known.tables[c.recordKey()]; ok {
		return t, nil
	}
	_, t, err := s.read(ctx, c)
	if err == nil {
		known.tables[c.recordKey()] = t
	}
	return t, err
}

func encodeTable(t []storedFile) []byte {
	if len(t) == 0 {
		return nil
	}
	b, err := json.Marshal(t)
	if err != nil {
		panic("kafkaio: " + err.Error()) // plain fields always marshal
	}
	return b
}

// loose returns the files of obsolete claims to which no remaining claim refers. Of a claim that lost these are only
// the files written for it: the others belong to the claim that won.
func (s *Store) loose(ctx context.Context, known *claims, obsolete []claim) ([]storedFile, error) {
	type file struct{ name, writer string }
	needed := map[file]bool{}
	for _, c := range known.stay(s.keep) {
		t, err := s.tableOf(ctx, known, c)
		if err != nil {
			return nil, err
		}
		for _, f := range t {
			needed[file{f.Name, f.Writer}] = true
		}
	}
	var out []storedFile
	add := func(files []storedFile) {
		for _, f := range files {
			if k := (file{f.Name, f.Writer}); !needed[k] {
				needed[k] = true // once
				out = append(out, f)
			}
		}
	}
	for _, c := range obsolete {
		if !known.wins(c) {
			add(known.fresh[c.recordKey()])
			continue
		}
		t, err := s.tableOf(ctx, known, c)
		if err != nil {
			return nil, err
		}
		add(t)
	}
	return out, nil
}
