package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/trainer/backend"
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
	memory              string
	model, version      string
}

func (s *trainSplitFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.order, "split", "time", "rows are divided by time (the newest validate and are held out) or random")
	flags.StringVar(&s.validation, "validation", "0.2", "share of the rows that validates, after those held out, or a `file`")
	flags.StringVar(&s.holdout, "holdout", "", "score on the rows of this `file`, or on this share of FILE, such as 0.3, which nothing else sees")
	flags.StringVar(&s.holdoutLabels, "holdout-labels", "", "labels `array` of the npz files of --holdout and --validation; else that of --labels")
	flags.IntVar(&s.maxRows, "max-rows", 0, "train on so many rows at most, the newest; 0 is all")
	flags.Float64Var(&s.balance, "balance", 0, "keep of a class at most so many times the training rows of the rarest; 0 keeps all")
	flags.StringVar(&s.memory, "memory", defaultMemory, "features of at most this `size` are held in memory; more stay in their files and are read as the training goes")
	flags.StringVar(&s.model, "model", "", "model whose rows are taken, where FILE is a directory with those of several")
	flags.StringVar(&s.version, "version", "", "version of it")
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
	if _, err := parseBytes(s.memory); err != nil {
		return usageErrorf("--memory %s: %v", s.memory, err)
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
	Repeated   int    `json:"repeated"`    // rows of an archive that were there before, by id and time
	Files      int    `json:"files"`
	// NotFinite of the rows without features have some that are NaN, infinite or beyond float32; the first is told.
	NotFinite      int    `json:"not_finite,omitempty"`
	FirstNotFinite string `json:"first_not_finite,omitempty"`

	Outside    int `json:"outside,omitempty"`     // rows that are not of the wanted times
	OtherFiles int `json:"other_files,omitempty"` // of a directory: of other model versions
	Vanished   int `json:"vanished_files,omitempty"`
	// Unreadable says which files of a directory were left out, and why.
	Unreadable []string `json:"unreadable,omitempty"`
	// Streamed says that features stayed in their files; FeatureBytes is what they would take in memory.
	Streamed     bool       `json:"streamed"`
	FeatureBytes int64      `json:"feature_bytes"`
	TrainTime    *timeRange `json:"train_time,omitempty"`
	ValidTime    *timeRange `json:"validation_time,omitempty"`
	HeldOutTime  *timeRange `json:"held_out_time,omitempty"`
	HeldOut      int        `json:"held_out"`
	Validation   string     `json:"validation_file,omitempty"`
	Holdout      string     `json:"holdout_file,omitempty"`
	Weighted     bool       `json:"weights_not_used,omitempty"`
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

// garbage is how much memory may wait to be collected beside large features: Go's own rule allows as much as is in use.
const garbage = 256 << 20

// boundGarbage collects more often where the features are large, which costs little: they hold no pointers. GOGC, where
// it is set, is left alone. The returned function takes it back.
func boundGarbage(s *data.Set) (undo func()) {
	size := 4*len(s.X) + 2*len(s.Half)
	if s.Stored != nil {
		size = data.DefaultCache
	}
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
	all, source, err := f.openRows(f.inputFlags, file, k, &d.rows)
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
func (f trainFlags) divideRows(d *trainData, all *data.Set, file string, current *head.Head) error {
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
		in := f.inputFlags
		if f.split.holdoutLabels != "" {
			in.labels = f.split.holdoutLabels
		}
		var used trainRows
		s, source, err := f.openRows(in, name, all.K, &used)
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

// placed has the rows of a set that stays in files in their order there: they are read from one end to the other.
func placed(s *data.Set) *data.Set {
	if s == nil || s.Stored == nil {
		return s
	}
	return s.Select(s.ByPlace(data.Rows(s.N())))
}

// hold sets the held-out rows, then divides the others.
func (f trainFlags) hold(d *trainData, all *data.Set, from string, other func(string) (*data.Set, *trainSource, error)) error {
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

// oneClass refuses training rows that are all of one class: a head that is trained on them says that class of any row.
func (r trainRows) oneClass(file string) error {
	if present := r.Present(); len(present) == 1 {
		return fmt.Errorf("%s: all %d training rows are of class %d, allowed are rows of at least 2 classes", file, r.Train, present[0])
	}
	return nil
}

// divide sets the training and validation rows.
func (f trainFlags) divide(d *trainData, all *data.Set, from string, other func(string) (*data.Set, *trainSource, error)) error {
	share, file, err := shareOrFile("--validation", f.split.validation)
	if err != nil {
		return err
	}
	if file != "" {
		d.train, d.rows.Rows, d.rows.Train, d.rows.TrainBy = all, all.N(), all.N(), countLabels(all)
		if d.valid, d.validFrom, err = other(file); err != nil {
			return err
		}
		d.rows.Used.Validation, d.rows.ValidBy, d.rows.Validation = d.valid.N(), countLabels(d.valid), file
		return nil
	}
	train, valid, used, err := all.Split(data.SplitConfig{Validation: share, MaxRows: f.split.maxRows, Balance: f.split.balance, Seed: f.set.Seed})
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
func (f trainFlags) openRows(in inputFlags, file string, k int, used *trainRows) (*data.Set, *trainSource, error) {
	memory, err := parseBytes(cmp.Or(f.split.memory, defaultMemory))
	if err != nil {
		return nil, nil, err
	}
	s := newTrainSource(memory, used)
	if st, serr := os.Stat(file); serr == nil && st.IsDir() {
		err = s.directory(file, f.split.model, f.split.version)
	} else {
		err = s.any(in, file)
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

// any adds the rows of a file of whatever format.
func (s *trainSource) any(in inputFlags, file string) error {
	if path, array, ok := in.isNPZ(file); ok {
		return s.npz(path, array, in.labels)
	}
	if !strings.HasSuffix(file, ".npz") {
		return s.file(file)
	}
	return s.npz(file, "features", in.labels)
}

// defaultMemory is --memory where it is not given.
const defaultMemory = "1GiB"

// parseBytes reads a size such as 1500000, 64MiB or 1.5GiB.
func parseBytes(text string) (int64, error) {
	digits, unit := text, 1.
	for suffix, u := range map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if d, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = d, u
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(v >= 0 && v*unit <= 1<<50) {
		return 0, fmt.Errorf("allowed are bytes, with or without KiB, MiB, GiB or TiB")
	}
	return int64(v * unit), nil
}
