package dataset

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/data"
)

// set makes a set of the rows that have features and a label, are of the span, and are no repeats. Features of at most
// the bound are read into memory. k = 0: the highest label and one.
func (s *Source) set(file string, k int) (*data.Set, error) {
	out, err := s.usable(file, k)
	if err != nil {
		return nil, err
	}
	s.keys = nil
	return out, s.hold(out)
}

// NewestRows is like set, of the newest rows, at most so many where most is not 0.
func (s *Source) NewestRows(file string, k, most int) (*data.Set, error) {
	out, err := s.usable(file, k)
	if err != nil {
		return nil, err
	}
	out = s.newest(out, most, s.Len())
	s.keys = nil
	return out, s.hold(out)
}

// Len is how many rows were read, usable or not.
func (s *Source) Len() int { return len(s.labels) }

// usable is the set with features where they lie.
func (s *Source) usable(file string, k int) (*data.Set, error) {
	if s.d == 0 {
		return nil, fmt.Errorf("%s: none of the %d rows has features: column features is null in all", file,
			len(s.labels))
	}
	const least = 16 << 20
	stored, err := data.NewStored(s.d, min(max(s.memory, least), data.DefaultCache), s.regions...)
	if err != nil {
		return nil, err
	}
	out := &data.Set{D: s.d, K: k, Stored: stored}
	if k == 0 {
		if out.K, err = s.classes(); err != nil {
			return nil, err
		}
	}
	if err := s.collect(out); err != nil {
		return nil, err
	}
	if out.N() == 0 {
		return nil, fmt.Errorf("%s: none of the %d rows has features and a label%s", file, len(s.labels),
			s.Used.without())
	}
	return out, nil
}

// collect adds the usable rows to a set, and counts the others.
func (s *Source) collect(out *data.Set) error {
	n := len(s.labels)
	null, outside, notFinite, repeated := marks(s.null, n), marks(s.Outside, n), make([]bool, n), s.repeats(n)
	if err := out.Stored.Scan(func(row int, finite bool) { notFinite[row] = !finite }); err != nil {
		return fmt.Errorf("read %w", err)
	}
	timed := !s.untimed && len(s.times) == n
	for i, label := range s.labels {
		switch {
		case outside[i]:
			s.Used.Outside++
		case int(label) >= out.K:
			of, row := s.place(i)
			return of.badLabel(row, label, out.K)
		case label < 0:
			s.Used.Unlabelled++
		case null[i]:
			s.Used.NoFeatures++
		case notFinite[i]:
			s.Used.NoFeatures++
			if s.Used.NotFinite++; s.Used.NotFinite == 1 {
				s.Used.FirstNotFinite = s.valueNotFinite(out.Stored, i)
			}
		case repeated != nil && repeated[i]:
			s.Used.Repeated++
		default:
			out.Index, out.Y = append(out.Index, int32(i)), append(out.Y, label)
			if timed {
				out.Time = append(out.Time, s.times[i])
			}
		}
	}
	if !timed {
		s.times = nil
	}
	return nil
}

// badLabel says that the label of a row is none of k classes.
func (f sourceFile) badLabel(row int, label int32, k int) error {
	return fmt.Errorf("%s: %s: row %d: label %d, allowed 0..%d", f.path, f.label, row, label, k-1)
}

// MostClasses bounds the number of classes that is taken from labels alone, or from a request: as many as a stream may
// have. Without it one stray label would take all memory.
const MostClasses = 1 << 17

// classes is the highest label and one.
func (s *Source) classes() (int, error) {
	k := 2
	for i, y := range s.labels {
		if y >= MostClasses {
			of, row := s.place(i)
			return 0, fmt.Errorf("%w where neither a head nor logits say the number of classes",
				of.badLabel(row, y, MostClasses))
		}
		k = max(k, int(y)+1)
	}
	return k, nil
}

// marks are n flags, of which those at the given places are set.
func marks(places []int32, n int) []bool {
	out := make([]bool, n)
	for _, i := range places {
		out[i] = true
	}
	return out
}

// valueNotFinite says which value of a row is not finite: it is too large for float32, infinite or no number.
func (s *Source) valueNotFinite(stored *data.Stored, row int) string {
	//nolint:gosec // rows that are in memory
	one := &data.Set{D: s.d, Stored: stored, Index: []int32{int32(row)}, Y: []int32{0}}
	of, inFile := s.place(row)
	for j, v := range one.Chunk(nil, 0, 1) {
		if v-v != 0 {
			return fmt.Sprintf("%s: %s: row %d: value %d is %v as float32, allowed are finite numbers", of.path,
				of.features, inFile, j, v)
		}
	}
	return ""
}

// hold reads the features of a set into memory where they fit, and closes the files then.
func (s *Source) hold(out *data.Set) (err error) {
	if s.Used.FeatureBytes = out.Stored.Bytes(out.N()); s.Used.FeatureBytes > s.memory {
		s.Used.Streamed = true
		return nil
	}
	if out.Half, out.X, err = out.Stored.Pack(out.Index); err != nil {
		return fmt.Errorf("read %w", err)
	}
	out.Stored, out.Index, s.times = nil, data.Rows(out.N()), out.Time
	return s.Close()
}
