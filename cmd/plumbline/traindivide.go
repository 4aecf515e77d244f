package main

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

// trainPart is a part of the rows: a share of them, or a file of its own.
type trainPart struct {
	share float64
	file  string
}

// trainOptions say which rows are read, and how they are divided. Messages name the flags of plumbline train.
type trainOptions struct {
	array, labels       string // arrays of npz files
	holdoutLabels       string // that of the files below, where it is another
	random              bool   // divide at random, not by time
	validation, holdout trainPart
	balance             float64 // keep of a class at most so many times the training rows of the rarest; 0: all
	maxRows             int     // train on so many rows at most, the newest; 0: all
	classes             int     // 0: the head, the file or the labels say it
	memory              int64   // features of at most so many bytes are held in memory
	model, version      string  // whose rows, where a directory has those of several
	seed                uint64
	head                string // the file of the current head, for messages
}

// trainData is the rows of all files.
type trainData struct {
	train, valid, hold *data.Set // hold may be nil
	rows               trainRows
	source             *trainSource // of FILE
	validFrom          *trainSource // of --validation and --holdout, where those are files
	holdFrom           *trainSource
	sources            []*trainSource
}

// close closes the files that features lie in.
func (d *trainData) close() {
	for _, s := range d.sources {
		_ = s.close() // they were for reading
	}
}

// because adds to an error what kept features from being read: to the backend such rows are not numbers; and where a training
// diverged, what may have made it.
func (d *trainData) because(err error) error {
	for _, s := range []*data.Set{d.train, d.valid, d.hold} {
		if s != nil && s.Stored != nil && s.Stored.Err() != nil {
			return fmt.Errorf("%w: %w", s.Stored.Err(), err)
		}
	}
	if errors.Is(err, backend.ErrDiverged) {
		value, column := largestFeature(d.train, d.valid)
		return fmt.Errorf("%w: a smaller --rate may help, or features of another scale: the largest is %.3g, value %d of its row", err, value, column)
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

// read reads a file and those of validation and holdout, and divides them.
func (f trainOptions) read(file string, current *head.Head) (*trainData, error) {
	k := f.classes
	if current != nil {
		if k != 0 && k != current.K() {
			return nil, fmt.Errorf("--classes %d: --head %s has %d", k, f.head, current.K())
		}
		k = current.K()
	}
	d := &trainData{}
	all, source, err := f.openRows(file, f.labels, k, &d.rows)
	if source != nil {
		d.sources = append(d.sources, source)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	d.source = source
	if err := f.divideRows(d, all, file, current); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// divideRows checks the rows against the head, and divides them.
func (f trainOptions) divideRows(d *trainData, all *data.Set, file string, current *head.Head) error {
	if current != nil && all.D != current.D() {
		return fmt.Errorf("%s: %d features a row, --head %s takes %d", file, all.D, f.head, current.D())
	}
	if k := d.source.k; k != 0 && k != all.K {
		of := fmt.Sprintf("--classes %d", all.K)
		if current != nil {
			of = fmt.Sprintf("--head %s has %d", f.head, all.K)
		}
		return fmt.Errorf("%s: column logits or probs is of %d classes, %s", file, k, of)
	}
	other := func(name string) (*data.Set, *trainSource, error) {
		labels := cmp.Or(f.holdoutLabels, f.labels)
		var used trainRows
		s, source, err := f.openRows(name, labels, all.K, &used)
		if source != nil {
			d.sources = append(d.sources, source)
		}
		if err == nil && s.D != all.D {
			err = fmt.Errorf("%s: %d features a row, %s has %d", name, s.D, file, all.D)
		}
		return s, source, err
	}
	d.validFrom, d.holdFrom = d.source, d.source
	if err := f.hold(d, all, file, other); err != nil {
		return err
	}
	d.train, d.valid, d.hold = placed(d.train), placed(d.valid), placed(d.hold)
	d.rows.TrainTime, d.rows.ValidTime, d.rows.HeldOutTime = d.source.timeOf(d.train), d.validFrom.timeOf(d.valid), d.holdFrom.timeOf(d.hold)
	return nil
}

// hold sets the held-out rows, then divides the others.
func (f trainOptions) hold(d *trainData, all *data.Set, from string, other func(string) (*data.Set, *trainSource, error)) error {
	order := all.ByTime()
	switch {
	case f.random:
		d.rows.Order = "random"
		order = data.Shuffled(order, f.seed, 0)
	case all.Time == nil:
		d.rows.Order = "file"
	default:
		d.rows.Order = "time"
	}
	all = all.Select(order)
	all.Time = nil // in order now
	share, file := f.holdout.share, f.holdout.file
	if file != "" {
		var err error
		if d.hold, d.holdFrom, err = other(file); err != nil {
			return err
		}
		d.rows.Holdout = file
	}
	n := all.N()
	if share > 0 {
		held := int(share*float64(n) + 0.5)
		if held < 1 || held > n-2 {
			return fmt.Errorf("%s: --holdout %g of %d rows is %d, allowed 1..%d", from, share, n, held, n-2)
		}
		d.hold, all = all.Select(data.Rows(n)[n-held:]), all.Select(data.Rows(n)[:n-held])
	}
	if d.hold != nil {
		d.rows.HeldOut = d.hold.N()
	}
	if err := f.divide(d, all, from, other); err != nil {
		return err
	}
	return d.rows.oneClass(from)
}

// divide sets the training and validation rows.
func (f trainOptions) divide(d *trainData, all *data.Set, from string, other func(string) (*data.Set, *trainSource, error)) error {
	share, file := f.validation.share, f.validation.file
	if file != "" {
		var err error
		d.train, d.rows.Rows, d.rows.Train, d.rows.TrainBy = all, all.N(), all.N(), countLabels(all)
		if d.valid, d.validFrom, err = other(file); err != nil {
			return err
		}
		d.rows.Used.Validation, d.rows.ValidBy, d.rows.Validation = d.valid.N(), countLabels(d.valid), file
		return nil
	}
	train, valid, used, err := all.Split(data.SplitConfig{Validation: share, MaxRows: f.maxRows, Balance: f.balance, Seed: f.seed})
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	d.rows.Used, d.train, d.valid = used, all.Select(train), all.Select(valid)
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
func (f trainOptions) openRows(file, labels string, k int, used *trainRows) (*data.Set, *trainSource, error) {
	s := newTrainSource(f.memory, used)
	var err error
	if st, serr := os.Stat(file); serr == nil && st.IsDir() {
		err = s.directory(file, f.model, f.version)
	} else {
		err = s.any(file, f.array, labels)
	}
	if err != nil {
		return nil, s, err
	}
	if k == 0 {
		k = s.k
	}
	set, err := s.set(file, k)
	return set, s, err
}

// any adds the rows of a file of whatever format; array and labels are names in npz files.
func (s *trainSource) any(file, array, labels string) error {
	if path, array, ok := isNPZ(file, array); ok {
		return s.npz(path, array, labels)
	}
	if !strings.HasSuffix(file, ".npz") {
		return s.file(file)
	}
	return s.npz(file, "features", labels)
}
