package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Part is a part of the rows: a share of them, or a file of its own.
type Part struct {
	Share float64
	File  string
}

// Options say which rows are read, and how they are divided. Messages name the flags of plumbline train.
type Options struct {
	Array, Labels       string // arrays of npz files
	HoldoutLabels       string // that of the files below, where it is another
	Random              bool   // divide at random, not by time
	Validation, Holdout Part
	Unknown             string  // file of rows of other classes; "": none
	Balance             float64 // keep of a class at most so many times the training rows of the rarest; 0: all
	MaxRows             int     // train on so many rows at most, the newest; 0: all
	Classes             int     // 0: the head, the file or the labels say it
	Memory              int64   // features of at most so many bytes are held in memory
	Model, Version      string  // whose rows, where a directory has those of several
	Seed                uint64
	Head                string // the file of the current head, for messages
}

// Mixed says that training and validation rows are of the same time.
func (f Options) Mixed() bool { return f.Random && f.Validation.File == "" }

// Data is the rows of all files.
type Data struct {
	Train, Valid, Hold *data.Set // hold may be nil
	Unknown            *data.Set // nil where there are none; its labels mean nothing
	Rows               Rows
	source             *Source // of FILE
	validFrom          *Source // of --validation and --holdout, where those are files
	holdFrom           *Source
	sources            []*Source
}

// Close closes the files that features lie in.
func (d *Data) Close() {
	for _, s := range d.sources {
		_ = s.Close() // they were for reading
	}
}

// Because adds to an error what kept features from being read: to the backend such rows are not numbers; and where a
// training diverged, what may have made it.
func (d *Data) Because(err error) error {
	for _, s := range []*data.Set{d.Train, d.Valid, d.Hold} {
		if s != nil && s.Stored != nil && s.Stored.Err() != nil {
			return fmt.Errorf("%w: %w", s.Stored.Err(), err)
		}
	}
	if errors.Is(err, backend.ErrDiverged) {
		value, column := largestFeature(d.Train, d.Valid)
		return fmt.Errorf("%w: a smaller --rate may help, or features of another scale: "+
			"the largest is %.3g, value %d of its row", err, value, column)
	}
	return err
}

// largestFeature is the one that is farthest from 0, and its place in its row.
func largestFeature(sets ...*data.Set) (value float32, column int) {
	const rows = 256 // at a time
	var scratch []float32
	for _, s := range sets {
		for from := 0; from < s.N(); from += rows {
			scratch = s.Chunk(scratch, from, min(rows, s.N()-from))
			for i, v := range scratch {
				if max(v, -v) > max(value, -value) {
					value, column = v, i%s.D
				}
			}
		}
	}
	return value, column
}

// Read reads a file and those of validation and holdout, and divides them.
func (f Options) Read(file string, current *head.Head) (*Data, error) {
	k := f.Classes
	if current != nil {
		if k != 0 && k != current.K() {
			return nil, fmt.Errorf("--classes %d: --head %s has %d", k, f.Head, current.K())
		}
		k = current.K()
	}
	d := &Data{}
	all, source, err := f.openRows(file, f.Labels, k, &d.Rows)
	if source != nil {
		d.sources = append(d.sources, source)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	d.source = source
	if err := f.divideRows(d, all, file, current); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// divideRows checks the rows against the head, and divides them.
func (f Options) divideRows(d *Data, all *data.Set, file string, current *head.Head) error {
	if current != nil && all.D != current.D() {
		return fmt.Errorf("%s: %d features a row, --head %s takes %d", file, all.D, f.Head, current.D())
	}
	if k := d.source.K; k != 0 && k != all.K {
		of := fmt.Sprintf("--classes %d", all.K)
		if current != nil {
			of = fmt.Sprintf("--head %s has %d", f.Head, all.K)
		}
		return fmt.Errorf("%s: column logits or probs is of %d classes, %s", file, k, of)
	}
	other := func(name string) (*data.Set, *Source, error) {
		labels := cmp.Or(f.HoldoutLabels, f.Labels)
		var used Rows
		s, source, err := f.openRows(name, labels, all.K, &used)
		if source != nil {
			d.sources = append(d.sources, source)
		}
		if err == nil && s.D != all.D {
			err = fmt.Errorf("%s: %d features a row, %s has %d", name, s.D, file, all.D)
		}
		return s, source, err
	}
	if f.Unknown != "" {
		var used Rows
		s, source, err := f.openRows(f.Unknown, f.Labels, MostClasses, &used)
		if source != nil {
			d.sources = append(d.sources, source)
		}
		if err == nil && s.D != all.D {
			err = fmt.Errorf("%s: %d features a row, %s has %d", f.Unknown, s.D, file, all.D)
		}
		if err != nil {
			return fmt.Errorf("--ood: %w", err)
		}
		d.Unknown = Placed(s)
	}
	d.validFrom, d.holdFrom = d.source, d.source
	if err := f.hold(d, all, file, other); err != nil {
		return err
	}
	d.Train, d.Valid, d.Hold = Placed(d.Train), Placed(d.Valid), Placed(d.Hold)
	d.Rows.TrainTime, d.Rows.ValidTime, d.Rows.HeldOutTime = d.source.timeOf(d.Train), d.validFrom.timeOf(d.Valid),
		d.holdFrom.timeOf(d.Hold)
	return nil
}

// hold sets the held-out rows, then divides the others.
func (f Options) hold(d *Data, all *data.Set, from string, other func(string) (*data.Set, *Source, error)) error {
	order := all.ByTime()
	switch {
	case f.Random:
		d.Rows.Order = "random"
		order = data.Shuffled(order, f.Seed, 0)
	case all.Time == nil:
		d.Rows.Order = "file"
	default:
		d.Rows.Order = "time"
	}
	all = all.Select(order)
	all.Time = nil // in order now
	share, file := f.Holdout.Share, f.Holdout.File
	if file != "" {
		var err error
		if d.Hold, d.holdFrom, err = other(file); err != nil {
			return fmt.Errorf("--holdout: %w", err)
		}
		d.Rows.Holdout = file
	}
	n := all.N()
	if share > 0 {
		held := int(share*float64(n) + 0.5)
		if held < 1 || held > n-2 {
			return fmt.Errorf("%s: --holdout %g of %d rows is %d, allowed 1..%d", from, share, n, held, n-2)
		}
		d.Hold, all = all.Select(data.Rows(n)[n-held:]), all.Select(data.Rows(n)[:n-held])
	}
	if d.Hold != nil {
		d.Rows.HeldOut = d.Hold.N()
	}
	if err := f.divide(d, all, from, other); err != nil {
		return err
	}
	return d.Rows.OneClass(from)
}

// divide sets the training and validation rows.
func (f Options) divide(d *Data, all *data.Set, from string, other func(string) (*data.Set, *Source, error)) error {
	share, file := f.Validation.Share, f.Validation.File
	if file != "" {
		var err error
		d.Train, d.Rows.Rows, d.Rows.Train, d.Rows.TrainBy = all, all.N(), all.N(), countLabels(all)
		if d.Valid, d.validFrom, err = other(file); err != nil {
			return fmt.Errorf("--validation: %w", err)
		}
		d.Rows.Used.Validation, d.Rows.ValidBy, d.Rows.Validation = d.Valid.N(), countLabels(d.Valid), file
		return nil
	}
	train, valid, used, err := all.Split(data.SplitConfig{Validation: share, MaxRows: f.MaxRows, Balance: f.Balance,
		Seed: f.Seed})
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	d.Rows.Used, d.Train, d.Valid = used, all.Select(train), all.Select(valid)
	return nil
}

func countLabels(s *data.Set) []int {
	by := make([]int, s.K)
	for _, y := range s.Y {
		by[y]++
	}
	return by
}

// openRows are the rows of a file or directory that have features and a label. k = 0 lets the file say the number of
// classes. The source, which may be there beside an error, is to be closed after the last use of the rows.
func (f Options) openRows(file, labels string, k int, used *Rows) (*data.Set, *Source, error) {
	s := NewSource(f.Memory, used)
	var err error
	if st, serr := os.Stat(file); serr == nil && st.IsDir() {
		err = s.directory(file, f.Model, f.Version)
	} else {
		err = s.any(file, f.Array, labels)
	}
	if err != nil {
		return nil, s, err
	}
	if k == 0 {
		k = s.K
	}
	set, err := s.set(file, k)
	return set, s, err
}

// any adds the rows of a file of whatever format; array and labels are names in npz files.
func (s *Source) any(file, array, labels string) error {
	if path, array, ok := isNPZ(file, array); ok {
		return s.npz(path, array, labels)
	}
	if !strings.HasSuffix(file, ".npz") {
		return s.file(file)
	}
	return s.npz(file, "features", labels)
}
