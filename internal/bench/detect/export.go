package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// exported is a stream as peers read it: runs×rows arrays of confidences and of what was right.
type exported struct {
	Group      string `json:"group"`
	Name       string `json:"name"`
	Rows       int    `json:"rows"`
	Runs       int    `json:"runs"`
	Change     int    `json:"change"`
	Bounded    bool   `json:"bounded"`
	Confidence string `json:"confidence"`
	Right      string `json:"right"`
}

// export writes the first runs of every stream, and streams.json.
func export(folder string, streams []stream, runs int) error {
	var list []exported
	var buffer []row
	for i := range streams {
		s := &streams[i]
		e := exported{s.group, s.name, s.n, runs, s.change, s.bounded, fmt.Sprintf("c%d.npy", i), fmt.Sprintf("a%d.npy", i)}
		c, a := npyHeader("<f4", runs, s.n), npyHeader("|u1", runs, s.n)
		for run := range runs {
			buffer = s.rows(run, buffer)
			for _, r := range buffer {
				c = binary.LittleEndian.AppendUint32(c, math.Float32bits(float32(r.c)))
				a = append(a, b2u(r.right))
			}
		}
		if err := os.WriteFile(filepath.Join(folder, e.Confidence), c, 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, e.Right), a, 0o600); err != nil {
			return err
		}
		list = append(list, e)
	}
	return writeJSON(filepath.Join(folder, "streams.json"), list)
}

func b2u(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// npyHeader returns the head of a version 1 file of a runs×rows array.
func npyHeader(kind string, runs, rows int) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", kind, runs, rows)
	const fixed = 10 // magic, version, length
	pad := 64 - (fixed+len(dict)+1)%64
	dict += strings.Repeat(" ", pad) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
	return append(b, dict...)
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
