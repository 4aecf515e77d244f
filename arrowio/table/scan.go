package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/parquet"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// FeaturePart is some rows of a file of features and labels, in the file's order.
type FeaturePart struct {
	N, D int
	K    int // 0 where the file does not say it
	// Features are in the file, N×D little-endian IEEE 754 numbers of Width bytes (2, 4, 8) from Offset on; or, where
	// Offset is -1, in Values.
	Offset int64
	Width  int
	Values []float32
	Null   []int32        // rows without features
	Label  []int32        // -1 = not known
	TS     []arrowio.Time // nil where the file has no times
	IDs    []arrowio.ID   // nil where the file has no ids of an archive
	// Weighted says that a weight is not 1.
	Weighted bool
}

// FeatureInfo is what a whole file says.
type FeatureInfo struct {
	Model, Version string
	Archive        bool
}

// ErrNoFeatures and ErrNoLabels mean that a file lacks a column.
var (
	ErrNoFeatures = errors.New("no features")
	ErrNoLabels   = errors.New("no labels")
)

// ScanFeatures reads the columns features, label, ts and weight of an Arrow file or stream, a Parquet or a CSV file,
// with or without scores, and gives them to part, piece by piece; a piece is valid until part returns. Features of
// Arrow files that are not compressed are not read, part is told where they are. The file may hold anything.
func ScanFeatures(path string, part func(*FeaturePart) error) (info FeatureInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return info, err // names the file
	}
	defer f.Close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("read %s: %w", path, err)
		}
	}()
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return info, fmt.Errorf("the file is empty")
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return info, err
	}
	has := func(magic string) bool { return bytes.HasPrefix(head[:n], []byte(magic)) }
	switch {
	case has(wire.FileMagic[:6]):
		return scanArrow(f, true, part)
	case has("\xff\xff\xff\xff"):
		return scanArrow(f, false, part)
	case has("PAR1"):
		return scanParquet(f, part)
	case has("PK"):
		return info, fmt.Errorf("%w: in npz files an array that FILE.npz:array or --array names", ErrNoFeatures)
	case has("\x93NUMPY"):
		return info, fmt.Errorf("a single .npy array has no labels; save both with numpy.savez")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return info, err
	}
	return scanCSV(f, part)
}

// scanRows is how many rows of a Parquet or CSV file make a part.
const scanRows = 1024

func scanParquet(f *os.File, part func(*FeaturePart) error) (info FeatureInfo, err error) {
	pf, err := parquet.Open(f)
	if err != nil {
		return info, err
	}
	info.Model, info.Version = pf.Meta(arrowio.MetaModel), pf.Meta(arrowio.MetaVersion)
	r, err := pf.ReadRecords(scanRows, func(name string, _ bool) bool {
		switch name {
		case "features", "label", "ts", "weight", "logits", "probs":
			return true
		}
		return false
	})
	if err != nil {
		return info, err
	}
	if len(r.Schema().Fields()) == 0 {
		return info, ErrNoFeatures
	}
	at := 0
	for r.Next() {
		p, err := recordPart(r.Record(), at)
		if err == nil {
			err = p.check(at)
		}
		if err == nil {
			at += p.N
			err = part(p)
		}
		if err != nil {
			return info, err
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return info, err
	}
	return info, nil
}

// recordPart reads the columns of a record whose first row is the file's row first.
func recordPart(rec arrow.Record, first int) (*FeaturePart, error) {
	p := &FeaturePart{N: int(rec.NumRows()), Offset: -1, Width: 4}
	var weight []float32
	for i, f := range rec.Schema().Fields() {
		c, err := rec.Column(i), error(nil)
		switch f.Name {
		case "features":
			p.D, err = appendLists(&p.Values, c, 0, first, true)
			for j := range c.Len() {
				if c.IsNull(j) {
					p.Null = append(p.Null, int32(j))
				}
			}
		case "label":
			p.Label = []int32{}
			err = appendInts(&p.Label, c, first)
		case "ts":
			err = appendTimes(&p.TS, c, first)
		case "weight":
			err = appendFloats(&weight, c, 1)
		case "logits", "probs":
			if l, ok := c.(array.ListLike); ok && c.Len() > 0 {
				from, to := l.ValueOffsets(0)
				p.K = int(to - from)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	p.Weighted = slices.ContainsFunc(weight, func(w float32) bool { return w != 1 })
	return p, nil
}

func scanCSV(f *os.File, part func(*FeaturePart) error) (info FeatureInfo, err error) {
	c, err := newCSVReader(f)
	if err != nil {
		return info, err
	}
	t := &Table{}
	columns, k, err := t.featureColumns(c.header)
	if err != nil {
		return info, err
	}
	at := 0
	flush := func() error {
		p := t.featurePart(k)
		if err := p.check(at); err != nil {
			return err
		}
		at += p.N
		err := part(p)
		t.truncate()
		return err
	}
	err = c.rows(columns, func() error {
		if t.N++; t.N < scanRows {
			return nil
		}
		return flush()
	})
	if err == nil && t.N > 0 {
		err = flush()
	}
	return info, err
}

// featurePart is the features and labels of a table whose rows have k scores.
func (t *Table) featurePart(k int) *FeaturePart {
	return &FeaturePart{
		N:        t.N,
		D:        t.D,
		K:        k,
		Offset:   -1,
		Width:    4,
		Values:   t.Features,
		Label:    t.Label,
		TS:       t.TS,
		Weighted: slices.ContainsFunc(t.Weight, func(w float32) bool { return w != 1 }),
	}
}

// truncate removes the rows of a featurePart, and keeps their memory.
func (t *Table) truncate() {
	t.N, t.Features, t.Label, t.Weight = 0, t.Features[:0], t.Label[:0], t.Weight[:0]
	if t.TS != nil {
		t.TS = t.TS[:0]
	}
}

// featureColumns says what to do with each column, nil for those that are passed over, and how many scores a row has.
func (t *Table) featureColumns(header []string) (out []csvColumn, k int, err error) {
	seen := map[string]bool{}
	for _, name := range header {
		if seen[name] {
			return nil, 0, fmt.Errorf("column %s occurs twice", name)
		}
		seen[name] = true
		d, feature := indexed(name, "features")
		_, logit := indexed(name, "logits")
		_, prob := indexed(name, "probs")
		switch {
		case logit || prob:
			k++
		case name == "logit" || name == "prob":
			k = 2
		}
		if feature {
			if d != t.D {
				return nil, 0, fmt.Errorf("column %s where features_%d is due", name, t.D)
			}
			t.D++
		}
		out = append(out, t.featureCells(name, feature))
	}
	if t.D == 0 {
		return nil, 0, ErrNoFeatures
	}
	if !seen["label"] {
		return nil, 0, ErrNoLabels
	}
	return out, k, nil
}

// featureCells is what to do with a column of a file of features, nil for one that is passed over.
func (t *Table) featureCells(name string, feature bool) csvColumn {
	switch {
	case feature:
		return floatColumn(&t.Features)
	case name == "label":
		return intColumn(&t.Label)
	case name == "ts":
		return timesColumn(&t.TS)
	case name == "weight":
		return floatOr(&t.Weight, 1)
	}
	return nil
}

// check validates what all formats share; rows before it are counted in first.
func (p *FeaturePart) check(first int) error {
	switch {
	case p.N == 0:
		return nil
	case p.D == 0 && p.Values == nil && p.Offset < 0 && len(p.Null) < p.N:
		return ErrNoFeatures
	case p.Label == nil:
		return ErrNoLabels
	case len(p.Label) != p.N || p.TS != nil && len(p.TS) != p.N || p.Offset < 0 && len(p.Values) != p.N*p.D:
		return fmt.Errorf("%d labels, %d times and %d feature values for %d rows of %d", len(p.Label), len(p.TS),
			len(p.Values), p.N, p.D)
	}
	for i, y := range p.Label {
		if y < -1 || y == math.MaxInt32 {
			return fmt.Errorf("label %d at row %d, allowed are 0 and more, and -1 or null where not known", y, first+i)
		}
	}
	return nil
}
