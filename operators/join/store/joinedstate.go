package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/filesum"
)

const (
	blockMagic   = "PLBM"
	blockVersion = 1
	maxBlockRows = 1 << 16
)

// appendTo appends the block: magic, version, fixed64 number of the first row, uvarint keys, each as two strings,
// uvarint rows, the rows.
func (b *block) appendTo(dst []byte) []byte { return append(b.appendHead(dst), b.rows...) }

// appendHead appends what is before the rows.
func (b *block) appendHead(dst []byte) []byte {
	dst = append(append(dst, blockMagic...), blockVersion)
	dst = binary.LittleEndian.AppendUint64(dst, b.first)
	dst = binenc.AppendUvarint(dst, uint64(len(b.keys)))
	for _, k := range b.keys {
		dst = binenc.AppendString(binenc.AppendString(dst, k.Model), k.Version)
	}
	return binenc.AppendUvarint(dst, uint64(b.n()))
}

// load fills a block that has nothing but its number. It keeps no part of data.
func (b *block) load(data []byte) error {
	if len(data) < len(blockMagic) || string(data[:len(blockMagic)]) != blockMagic {
		return fmt.Errorf("joined rows: no %q at the start of %d bytes", blockMagic, len(data))
	}
	r := binenc.NewReader(data[len(blockMagic):])
	r.Version(blockVersion)
	if first := r.Fixed64(); r.Err() == nil && first != b.first {
		r.Failf("a block of row %d, want row %d", first, b.first)
	}
	for range r.Count(2, maxBlockRows) {
		b.keys = append(b.keys, Key{Model: r.String(maxNameBytes), Version: r.String(maxNameBytes)})
	}
	n := r.Count(metBytes, maxBlockRows)
	rows := r.Raw(n * metBytes)
	if err := r.Close(); err != nil {
		return fmt.Errorf("joined rows: %w", err)
	}
	for i := range n {
		if k := int(binary.LittleEndian.Uint16(rows[i*metBytes+24:])); k >= len(b.keys) {
			return fmt.Errorf("joined rows: row %d is of key %d of %d", b.first+uint64(i), k, len(b.keys))
		}
	}
	b.rows = append(make([]byte, 0, len(rows)), rows...)
	return nil
}

// seal makes a file of the block; its rows stay.
func (b *block) seal(dir string) error {
	head := b.appendHead(nil)
	b.hash = filesum.Fast(head, b.rows)
	b.size = int64(len(head) + len(b.rows))
	path := filepath.Join(dir, hex.EncodeToString(b.hash[:]))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{head, b.rows} { // in one, they would have to be copied
		if _, failed := f.Write(part); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		b.path = path
	}
	return err
}

// AppendState appends what a checkpoint must hold beside Files: the numbers of the first row remembered and of the
// next, then the blocks. It is canonical for the same calls since an empty queue. The files stay as those of a Store.
func (j *Joined) AppendState(dst []byte) []byte {
	for _, path := range j.obsolete {
		_ = os.Remove(path)
	}
	j.obsolete = nil
	dst = binenc.AppendUvarint(dst, j.oldest)
	dst = binenc.AppendUvarint(dst, j.next)
	dst = binenc.AppendUvarint(dst, uint64(len(j.blocks)))
	var buf []byte
	for _, b := range j.blocks {
		dst = binenc.AppendUvarint(dst, b.first)
		dst = binenc.AppendUvarint(dst, uint64(b.n()))
		if b.path == "" {
			buf = b.appendTo(buf[:0])
			dst = binenc.AppendBytes(append(dst, inMemory), buf)
			continue
		}
		b.listed = true
		dst = append(append(dst, inFile), b.hash[:]...)
		dst = binenc.AppendUvarint(dst, uint64(b.size))
	}
	return dst
}

// Files are those that the latest AppendState refers to.
func (j *Joined) Files() []File {
	var out []File
	for _, b := range j.blocks {
		if b.path != "" {
			out = append(out, File{hex.EncodeToString(b.hash[:]), b.size, b.path})
		}
	}
	return out
}

// Restore fills an empty queue from what AppendState wrote; fetch is as of Store.Restore. After an error it is of no
// use.
func (j *Joined) Restore(r *binenc.Reader, fetch func(name, path string) error) error {
	oldest, next := r.Uvarint(), r.Uvarint()
	if r.Err() == nil && (oldest > next || next-oldest > maxJoined) {
		r.Failf("rows %d to %d have joined", oldest, next)
	}
	at := oldest
	for i := range r.Count(3, math.MaxInt32) {
		b := &block{first: r.Uvarint()}
		rows := uint64(r.Int("rows", 1, maxBlockRows))
		if r.Err() != nil {
			return r.Err()
		}
		if i == 0 && (b.first > oldest || oldest-b.first >= rows) || i > 0 && b.first != at {
			return fmt.Errorf("joined rows: a block of %d from row %d on, want row %d", rows, b.first, at)
		}
		if err := j.restoreBlock(r, b, rows, fetch); err != nil {
			return err
		}
		at = b.first + rows
		j.blocks = append(j.blocks, b)
	}
	if r.Err() == nil && at != next {
		r.Failf("joined rows end before %d, the next is %d", at, next)
	}
	if r.Err() != nil {
		return r.Err()
	}
	j.oldest, j.next = oldest, next
	j.enter()
	return j.reopen()
}

func (j *Joined) restoreBlock(r *binenc.Reader, b *block, rows uint64, fetch func(name, path string) error) error {
	var data []byte
	switch kind := r.Byte(); {
	case r.Err() != nil:
	case kind == inMemory:
		data = r.Bytes(math.MaxInt32)
	case kind == inFile:
		copy(b.hash[:], r.Raw(filesum.Size))
		b.size = r.Int("size", 0, math.MaxInt64)
		if r.Err() != nil {
			break
		}
		if err := j.makeDir(); err != nil {
			return err
		}
		b.path, b.listed = filepath.Join(j.work.Path(), hex.EncodeToString(b.hash[:])), true
		var err error
		if data, err = fetchFile(b.path, b.hash, b.size, fetch); err != nil {
			return err
		}
	default:
		return fmt.Errorf("joined rows: block of kind %d", kind)
	}
	if r.Err() != nil {
		return r.Err()
	}
	if err := b.load(data); err != nil {
		return err
	}
	if uint64(b.n()) != rows {
		return fmt.Errorf("joined rows: a block of %d rows, the checkpoint says %d", b.n(), rows)
	}
	return nil
}

// enter puts the remembered rows into the index.
func (j *Joined) enter() {
	for _, b := range j.blocks {
		for i := max(0, int64(j.oldest)-int64(b.first)); i < int64(b.n()); i++ {
			id := ID(b.rows[i*metBytes:])
			j.index.Add(j.index.Hash(&id), refOf(b.first+uint64(i)))
		}
	}
}

// reopen gives the last block room again, and makes files of the blocks that should be ones.
func (j *Joined) reopen() error {
	for i, b := range j.blocks {
		switch {
		case b.path != "":
		case i == len(j.blocks)-1 && b.n() < j.o.BlockRows:
			b.known = map[Key]uint16{}
			for n, k := range b.keys {
				b.known[k] = uint16(n)
			}
		default:
			if err := j.fill(b); err != nil {
				return err
			}
		}
	}
	return nil
}
