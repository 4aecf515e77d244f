package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// digest names what a stream holds: with what was measured on it before, a run that was stopped goes on.
func digest(s *stream) string {
	h := fnv.New128a()
	write32(h, uint32(s.k))
	for _, x := range s.z {
		write32(h, math.Float32bits(x))
	}
	for _, y := range s.labels {
		write32(h, uint32(y))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func write32(h hash.Hash, x uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], x)
	_, _ = h.Write(b[:])
}

// peers are the policies that plumbline is compared with, and online Platt scaling on the scores as they are.
type peers struct {
	Policies []policy `json:"policies"`
	Online   regret   `json:"online"`
}

// cache is a folder of peers by stream; "" is none.
type cache string

func (c cache) file(s *stream) string { return filepath.Join(string(c), digest(s)+".json") }

func (c cache) get(s *stream) (p peers, ok bool, err error) {
	if c == "" {
		return p, false, nil
	}
	b, err := os.ReadFile(c.file(s))
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return p, false, fmt.Errorf("what was measured on %s before: %w", s.name, err)
	}
	return p, true, nil
}

func (c cache) put(s *stream, p peers) error {
	if c == "" {
		return nil
	}
	if err := os.MkdirAll(string(c), 0o750); err != nil {
		return err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(c.file(s), b, 0o600)
}
