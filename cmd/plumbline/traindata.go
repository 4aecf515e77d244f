package main

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// trainSplitFlags say which rows train, validate and are held out.
type trainSplitFlags struct {
	order               string
	validation, holdout string
	holdoutLabels       string
	balance             float64
	maxRows, classes    int
}

func (s *trainSplitFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.order, "split", "time", "rows are divided by time (the newest validate and are held out) or random")
	flags.StringVar(&s.validation, "validation", "0.2", "share of the rows that validates, after those held out, or a `file`")
	flags.StringVar(&s.holdout, "holdout", "", "score on the rows of this `file`, or on this share of FILE, such as 0.3, which nothing else sees")
	flags.StringVar(&s.holdoutLabels, "holdout-labels", "", "labels `array` of the npz files of --holdout and --validation; else that of --labels")
	flags.IntVar(&s.maxRows, "max-rows", 0, "train on so many rows at most, the newest; 0 is all")
	flags.Float64Var(&s.balance, "balance", 0, "keep of a class at most so many times the training rows of the rarest; 0 keeps all")
	flags.IntVar(&s.classes, "classes", 0, "number of classes, where neither --head nor logits say it; 0 is the highest label and one")
}

// shareOrFile reads a share between 0 and 1, or else takes the text for a file.
func shareOrFile(flag, text string) (share float64, file string, err error) {
	v, perr := strconv.ParseFloat(text, 64)
	if perr != nil {
		return 0, text, nil
	}
	if !(v > 0 && v < 1) {
		return 0, "", usageErrorf("%s %s: a share must be between 0 and 1", flag, text)
	}
	return v, "", nil
}

func (s trainSplitFlags) check() error {
	_, file, err := shareOrFile("--validation", s.validation)
	if err != nil {
		return err
	}
	if _, _, err := shareOrFile("--holdout", s.holdout); err != nil {
		return err
	}
	switch {
	case s.order != "time" && s.order != "random":
		return usageErrorf("--split %q: allowed are time and random", s.order)
	case s.validation == "":
		return usageErrorf("--validation: a share or a file is needed")
	case file != "" && (s.maxRows != 0 || s.balance != 0):
		return usageErrorf("--validation %s: not with --max-rows or --balance", file)
	case s.classes < 0 || s.classes == 1:
		return usageErrorf("--classes %d: allowed are 0 and from 2", s.classes)
	}
	if err := (data.SplitConfig{MaxRows: s.maxRows, Balance: s.balance}).Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// trainRows says which rows were used, and how.
type trainRows struct {
	data.Used
	Order      string `json:"order"` // time, file (no column ts) or random
	Unlabelled int    `json:"unlabelled"`
	NoFeatures int    `json:"no_features"` // null, or not finite
	HeldOut    int    `json:"held_out"`
	Validation string `json:"validation_file,omitempty"`
	Holdout    string `json:"holdout_file,omitempty"`
	Weighted   bool   `json:"weights_not_used,omitempty"`
}

// trainData is the rows of all files.
type trainData struct {
	train, valid, hold *data.Set // hold may be nil
	rows               trainRows
}

// garbage is how much memory may wait to be collected beside large features: Go's own rule allows as much as is in use.
const garbage = 256 << 20

// boundGarbage collects more often where the features are large, which costs little: they hold no pointers. GOGC, where
// it is set, is left alone. The returned function takes it back.
func boundGarbage(s *data.Set) (undo func()) {
	size := 4*len(s.X) + 2*len(s.Half)
	if _, set := os.LookupEnv("GOGC"); set || size <= garbage {
		return func() {}
	}
	const least = 2
	before := debug.SetGCPercent(max(least, 100*garbage/size))
	return func() { debug.SetGCPercent(before) }
}

// readRows reads FILE and those of --validation and --holdout, and divides them.
func (f trainFlags) readRows(file string, current *head.Head) (*trainData, error) {
	k := f.split.classes
	if current != nil {
		if k != 0 && k != current.K() {
			return nil, fmt.Errorf("--classes %d: --head %s has %d", k, f.head, current.K())
		}
		k = current.K()
	}
	d := &trainData{}
	all, err := f.readFeatures(f.inputFlags, file, k, &d.rows)
	if err != nil {
		return nil, err
	}
	if current != nil && all.D != current.D() {
		return nil, fmt.Errorf("%s: %d features a row, --head %s takes %d", file, all.D, f.head, current.D())
	}
	other := func(name string) (*data.Set, error) {
		in := f.inputFlags
		if f.split.holdoutLabels != "" {
			in.labels = f.split.holdoutLabels
		}
		var used trainRows
		s, err := f.readFeatures(in, name, all.K, &used)
		if err == nil && s.D != all.D {
			err = fmt.Errorf("%s: %d features a row, %s has %d", name, s.D, file, all.D)
		}
		return s, err
	}
	if err := f.hold(d, all, other); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// hold sets the held-out rows, then divides the others.
func (f trainFlags) hold(d *trainData, all *data.Set, other func(string) (*data.Set, error)) error {
	order := all.ByTime()
	switch {
	case f.split.order == "random":
		d.rows.Order = "random"
		order = data.Shuffled(order, f.set.Seed, 0)
	case all.Time == nil:
		d.rows.Order = "file"
	default:
		d.rows.Order = "time"
	}
	all = all.Select(order)
	all.Time = nil // in order now
	share, file, err := shareOrFile("--holdout", f.split.holdout)
	if err != nil {
		return err
	}
	if file != "" {
		if d.hold, err = other(file); err != nil {
			return err
		}
		d.rows.Holdout = file
	}
	n := all.N()
	if share > 0 {
		held := int(share*float64(n) + 0.5)
		if held < 1 || held > n-2 {
			return fmt.Errorf("--holdout %g of %d rows is %d, allowed 1..%d", share, n, held, n-2)
		}
		d.hold, all = all.Select(data.Rows(n)[n-held:]), all.Select(data.Rows(n)[:n-held])
	}
	if d.hold != nil {
		d.rows.HeldOut = d.hold.N()
	}
	return f.divide(d, all, other)
}

// divide sets the training and validation rows.
func (f trainFlags) divide(d *trainData, all *data.Set, other func(string) (*data.Set, error)) error {
	share, file, err := shareOrFile("--validation", f.split.validation)
	if err != nil {
		return err
	}
	if file != "" {
		d.train, d.rows.Rows, d.rows.Train, d.rows.TrainBy = all, all.N(), all.N(), countLabels(all)
		if d.valid, err = other(file); err != nil {
			return err
		}
		d.rows.Used.Validation, d.rows.ValidBy, d.rows.Validation = d.valid.N(), countLabels(d.valid), file
		return nil
	}
	train, valid, used, err := all.Split(data.SplitConfig{Validation: share, MaxRows: f.split.maxRows, Balance: f.split.balance, Seed: f.set.Seed})
	if err != nil {
		return err
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

// readFeatures are the rows of a file that have features and a label. k = 0 lets the file say the number of classes.
func (f trainFlags) readFeatures(in inputFlags, file string, k int, used *trainRows) (*data.Set, error) {
	s, err := in.featureRows(file, used)
	if err != nil {
		return nil, err
	}
	if k != 0 {
		s.K = k
	}
	if s.K == 0 {
		for _, y := range s.Y {
			s.K = max(s.K, int(y)+1, 2)
		}
	}
	y, ts := s.Y, s.Time
	s.Y, s.Time = nil, nil
	var scratch []float32
	for i, label := range y {
		scratch = (&data.Set{D: s.D, X: s.X, Half: s.Half}).Chunk(scratch, i, 1)
		switch {
		case int(label) >= s.K:
			return nil, fmt.Errorf("%s: row %d: label %d, allowed 0..%d", file, i, label, s.K-1)
		case label < 0:
			used.Unlabelled++
			continue
		case !finite(scratch):
			used.NoFeatures++
			continue
		}
		s.Index, s.Y = append(s.Index, int32(i)), append(s.Y, label)
		if ts != nil {
			s.Time = append(s.Time, ts[i])
		}
	}
	if s.N() == 0 {
		return nil, fmt.Errorf("%s: none of the %d rows has features and a label", file, len(y))
	}
	return s, nil
}

// featureRows are all rows of a file, with label -1 where there is none. K is 0 where the file does not say it.
func (f inputFlags) featureRows(file string, used *trainRows) (*data.Set, error) {
	if path, array, ok := f.isNPZ(file); ok {
		return f.readNPZ(path, array)
	}
	t, err := f.open(file)
	if err != nil {
		return nil, err
	}
	if t.Features == nil {
		return nil, fmt.Errorf("%s: no features: a column features is needed, or in npz files an array that FILE.npz:array or --array names", file)
	}
	if t.Label == nil {
		return nil, fmt.Errorf("%s: no labels: a column label is needed, or in npz files an array that --labels names", file)
	}
	used.Weighted = t.Weight != nil
	return &data.Set{D: t.D, K: t.K, X: t.Features, Y: t.Label, Time: t.TS}, nil
}

func finite(x []float32) bool {
	for _, v := range x {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}
