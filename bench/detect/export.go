package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// exported is a stream as peers read it: runs×rows arrays of confidences and of what was right. ID changes with the
// rows.
type exported struct {
	ID         string `json:"id"`
	Group      string `json:"group"`
	Name       string `json:"name"`
	Rows       int    `json:"rows"`
	Runs       int    `json:"runs"`
	Change     int    `json:"change"`
	Every      int    `json:"every"`
	Confidence string `json:"confidence"`
	Right      string `json:"right"`
}

// exportedRuns is how many runs river itself may see.
const exportedRuns = 20

// exportAll writes the first runs of the streams that peers see, and streams.json.
func exportAll(o options) error {
	s, err := readScores(o.data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o750); err != nil {
		return err
	}
	var list []exported
	for _, st := range synthetic(s, o.n) {
		if st.group == groupWhere || isCalm(st.group) && st.name != calibratedName && st.name != turns {
			continue
		}
		e, err := export(o.out, &st, exportedRuns)
		if err != nil {
			return err
		}
		list = append(list, e)
	}
	return writeJSON(filepath.Join(o.out, "streams.json"), list)
}

// export writes the first runs of a stream, named after what is in them.
func export(folder string, s *stream, runs int) (exported, error) {
	var buffer []drawn
	digest := sha256.New()
	c, a := npyHeader("<f4", runs, s.n), npyHeader("|u1", runs, s.n)
	for run := range runs {
		buffer = s.rows(run, buffer)
		if run == 0 {
			_, _ = fmt.Fprint(digest, s.name, buffer)
		}
		for _, r := range buffer {
			c = binary.LittleEndian.AppendUint32(c, math.Float32bits(float32(r.c)))
			a = append(a, b2u(r.right))
		}
	}
	id := hex.EncodeToString(digest.Sum(nil))[:12]
	e := exported{ID: id, Group: s.group, Name: s.name, Rows: s.n, Runs: runs, Change: s.change, Every: s.weight(),
		Confidence: "c-" + id + ".npy", Right: "a-" + id + ".npy"}
	if err := os.WriteFile(filepath.Join(folder, e.Confidence), c, 0o600); err != nil {
		return e, err
	}
	return e, os.WriteFile(filepath.Join(folder, e.Right), a, 0o600)
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
