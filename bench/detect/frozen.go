package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
)

const groupReal = "real streams"

// frozen returns the streams that bench/detect/frozen.py wrote; none where it has not run.
func frozen(folder string) ([]stream, error) {
	var list []exported
	err := readJSON(filepath.Join(folder, "frozen.json"), &list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []stream
	for _, e := range list {
		c, err := npy.ReadFile(filepath.Join(folder, e.Confidence))
		if err != nil {
			return nil, err
		}
		a, err := npy.ReadFile(filepath.Join(folder, e.Right))
		if err != nil {
			return nil, err
		}
		if len(c.F32) != e.Rows || len(a.Int) != e.Rows {
			return nil, fmt.Errorf("%s: %d confidences and %d outcomes, want %d", e.Name, len(c.F32), len(a.Int),
				e.Rows)
		}
		out = append(out, stream{group: e.Group, name: e.Name, n: e.Rows,
			draw: func(_ *rand.Rand, i int) drawn { return drawn{float64(c.F32[i]), a.Int[i] != 0} }})
	}
	return out, nil
}

// realTable is the row of the first alarm on real streams, beside the stream's accuracy and mean confidence.
func realTable(b *strings.Builder, ours []result, peers []peer, streams []stream) {
	names, settings := detectorsOf(peers)
	head := append([]string{"stream", "rows", "accuracy", "confidence", "alarm, default", "alarm, 1e5", "change, 1e4"},
		names...)
	var rows [][]string
	for i := range streams {
		s := &streams[i]
		r := named(ours, s.name)
		if s.group != groupReal || r == nil {
			continue
		}
		var right, sum float64
		for _, r := range s.rows(0, nil) {
			sum += r.c / float64(s.n)
			if r.right {
				right += 1 / float64(s.n)
			}
		}
		line := []string{s.name, fmt.Sprint(s.n), percent(right), percent(sum)}
		for _, c := range []column{{"alarm", 3.15e6}, {"alarm", 1e5}, {"change", 1e4}} {
			line = append(line, summarise(r.at(c.name, c.level), 0).rows())
		}
		for k, n := range names {
			line = append(line, find(peers, n, settings[k], s.name).rows(0))
		}
		rows = append(rows, line)
	}
	if len(rows) > 0 {
		table(b, "**Real streams**: row of the first alarm. Change mode learns its curve on the first fifth (10,000 "+
			"rows at most).", head, rows)
	}
}
