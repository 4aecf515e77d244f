package feed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio/table"
)

// OpenTable opens a file of any format that tables have.
func OpenTable(file string, of table.Options) (*table.Table, error) {
	if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Size() == 0 {
		return nil, fmt.Errorf("read %s: the file is empty", file)
	}
	return table.Open(file, of)
}

// DefaultModel names a model whose file says none: the file's name, with that of the array where one is named.
func DefaultModel(file, array string) string {
	if i := strings.LastIndex(file, ".npz:"); i >= 0 {
		file, array = file[:i+len(".npz")], file[i+len(".npz:"):]
	}
	name := filepath.Base(file)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if array != "" {
		name += "-" + array
	}
	return name
}

// NoteNoLabels notes why a file has no labels, where something has their name.
func NoteNoLabels(of table.Options, file string, t *table.Table) {
	if of.Note != nil && t.Label == nil && t.NoLabel != nil {
		of.Note(fmt.Sprintf("%s: read without labels: %v", file, t.NoLabel))
	}
}

// ReadFile reads a file as rows, with those of the slice columns that it has. Messages carry float32 scores.
func ReadFile(file string, of table.Options, slices []string) (*Rows, error) {
	t, err := OpenTable(file, of)
	if err != nil {
		return nil, err
	}
	NoteNoLabels(of, file, t)
	rows := &Rows{
		Model: t.Model, Version: t.Version, Models: t.Slices["model"], Versions: t.Slices["version"],
		N: t.N, K: t.K, Scores: t.Scores32, Probs: t.Probs, Label: t.Label, IDs: t.IDs, TS: t.TS, NoTime: t.NoTime,
		D: t.D, Features: t.Features, Served: t.Served, Weight: t.Weight,
	}
	if rows.Model == "" {
		rows.Model = DefaultModel(file, of.Array)
	}
	if t.Scores64 != nil {
		rows.Scores = make([]float32, len(t.Scores64))
		for i, z := range t.Scores64 {
			rows.Scores[i] = float32(z)
		}
	}
	for _, name := range slices {
		if values := t.Slices[name]; values != nil {
			rows.Slices = append(rows.Slices, Column{Name: name, Values: values})
		}
	}
	return rows, nil
}

// ParseDelay reads MIN-MAX, or one duration for both; ok is false where it is neither.
func ParseDelay(s string) (lo, hi time.Duration, ok bool) {
	first, last, spread := strings.Cut(s, "-")
	if !spread {
		last = first
	}
	lo, err := time.ParseDuration(first)
	if err == nil {
		hi, err = time.ParseDuration(last)
	}
	if err != nil || lo < 0 || hi < lo {
		return 0, 0, false
	}
	return lo, hi, true
}

// FlushEvery keeps rows from waiting for their message longer than shards wait for them; 0 = they wait for nothing.
// Where rows come as fast as they can, nobody sees that they wait, and fewer messages take less time.
func FlushEvery(allowedLateness time.Duration, paced bool) time.Duration {
	switch {
	case allowedLateness <= 0:
		return DefaultFlushEvery
	case paced:
		return min(DefaultFlushEvery, allowedLateness)
	}
	return max(min(DefaultFlushEvery, allowedLateness), allowedLateness/2)
}

// Files are files that are one stream, one after another.
type Files struct {
	Names   []string
	Table   table.Options
	Columns []string // configured slice columns
	Order   Order    // of the rows of each file; its seed is that of the first
}

// Open returns the feed of the files, and the number of rows that it will send.
func (f Files) Open(o Options) (*Feed, int64, error) {
	var sources []Source
	var total int64
	for i, name := range f.Names {
		rows, err := ReadFile(name, f.Table, f.Columns)
		if err != nil {
			return nil, 0, err
		}
		order := f.Order
		order.Seed += uint64(i)
		src, err := rows.Open(order)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
		sources = append(sources, src)
		total += int64(rows.N) * int64(order.Repeat)
	}
	out, err := NewSequence(sources, o)
	if err != nil {
		return nil, 0, err
	}
	total = max(0, total-o.Skip)
	if o.Limit > 0 {
		total = min(total, o.Limit)
	}
	return out, total, nil
}
