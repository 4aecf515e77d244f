package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Seen holds the predictions, labelled or not: the grids of the three confidence score functions, all rows with the
// outcome 0. The zero value is empty and ready for use.
type Seen struct {
	MSP, Margin, NegEnt Grid
}

func (s *Seen) add(f confidences, w float64) error {
	wf := fix(w)
	if err := checkRoom(s.MSP.n, s.MSP.w, 1, wf); err != nil {
		return err
	}
	s.MSP.add(f.msp, w, wf, false)
	s.Margin.add(f.margin, w, wf, false)
	s.NegEnt.add(f.negent, w, wf, false)
	return nil
}

// Total returns the number of predictions and Σw.
func (s *Seen) Total() (n int64, w float64) { return s.MSP.Total() }

func (s *Seen) empty() bool { return s.MSP.n == 0 }

// Merge adds the rows of o, which stays as it is.
func (s *Seen) Merge(o *Seen) error {
	if err := s.check(o); err != nil {
		return err
	}
	s.merge(o)
	return nil
}

// check compares one grid only: all grids have the same totals.
func (s *Seen) check(o *Seen) error { return s.MSP.check(&o.MSP) }

func (s *Seen) merge(o *Seen) {
	s.MSP.merge(&o.MSP)
	s.Margin.merge(&o.Margin)
	s.NegEnt.merge(&o.NegEnt)
}

// Reset empties the grids and keeps their memory.
func (s *Seen) Reset() {
	s.MSP.Reset()
	s.Margin.Reset()
	s.NegEnt.Reset()
}

// Clone returns a deep copy.
func (s *Seen) Clone() *Seen {
	return &Seen{*s.MSP.Clone(), *s.Margin.Clone(), *s.NegEnt.Clone()}
}

const seenVersion = 1

// AppendBinary appends the encoding: u8 version, then the blocks of the grids of msp, margin, negent.
func (s *Seen) AppendBinary(b []byte) ([]byte, error) {
	return appendParts(append(b, seenVersion), &s.MSP, &s.Margin, &s.NegEnt)
}

// UnmarshalBinary replaces the contents by the encoded ones; after an error they are as they were.
func (s *Seen) UnmarshalBinary(data []byte) error { return replace(s, data) }

// decode decodes into a new one.
func (s *Seen) decode(data []byte, d *Decoder) error {
	grids := [...]*Grid{&s.MSP, &s.Margin, &s.NegEnt}
	r := binenc.NewReader(data)
	r.Version(seenVersion)
	for _, g := range grids {
		if err := readPart(&r, g.decode, d); err != nil {
			return fmt.Errorf("decode seen: %w", err)
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode seen: %w", err)
	}
	for _, g := range grids {
		if !g.sameTotal(s.MSP.n, s.MSP.w) {
			return fmt.Errorf("decode seen: grids of %d and %d rows: %w", s.MSP.n, g.n, ErrCorrupt)
		}
	}
	return nil
}

func (g *Grid) sameTotal(n, w int64) bool { return g.n == n && g.w == w }

// Labelled holds the labelled rows: the grids of the three confidence score functions and of the served confidence
// (of the rows that have one), soft bins of the maximum probability, class-wise bins, scores, label lags and the
// sample. Invariant: all but Served and Sample have the same rows.
type Labelled struct {
	MSP, Margin, NegEnt, Served Grid

	Soft      *SoftBins
	ClassWise *ClassWise
	Scores    Scores
	Lag       Lag
	Sample    *Sample
}

// newLabelled makes an empty one of a normalised configuration.
func newLabelled(cfg Config) (*Labelled, error) {
	var l Labelled
	var err error
	if l.ClassWise, err = NewClassWise(cfg.K, cfg.Bins); err != nil {
		return nil, err
	}
	if l.Soft, err = NewSoftBins(cfg.SoftBins, cfg.SoftTemperature); err != nil {
		return nil, err
	}
	if l.Sample, err = NewSample(cfg.K, cfg.SampleRows, cfg.SampleSeed); err != nil {
		return nil, err
	}
	return &l, nil
}

// config returns the normalised configuration that l was made with.
func (l *Labelled) config() Config {
	return Config{
		K: l.ClassWise.k, Bins: l.ClassWise.m, SoftBins: l.Soft.m, SoftTemperature: l.Soft.t,
		SampleRows: l.Sample.capacity, SampleSeed: l.Sample.seed,
	}
}

// labelRow is a labelled row whose values have been checked.
type labelRow struct {
	confidences
	nll, brier float64
	w          float64
	wf         int64   // fix(w)
	lag        int64   // nanoseconds
	served     float64 // NaN: absent
	correct    bool
}

// add adds a row with its probabilities and class; after an error nothing has changed.
func (l *Labelled) add(r *labelRow, p []float64, y int) error {
	if err := l.fits(r); err != nil {
		return err
	}
	l.ClassWise.add(p, y, r.w, r.wf)
	l.addScores(r)
	return nil
}

// fits returns the error for which addScores must not be called.
func (l *Labelled) fits(r *labelRow) error {
	if err := l.Scores.fits(r); err != nil {
		return err
	}
	return l.Lag.fits(r.lag)
}

// addScores adds the row to all but the class-wise bins.
func (l *Labelled) addScores(r *labelRow) {
	l.Scores.add(r)
	l.Lag.add(r.lag)
	l.Soft.add(r.msp, r.w, r.wf, r.correct)
	l.MSP.add(r.msp, r.w, r.wf, r.correct)
	l.Margin.add(r.margin, r.w, r.wf, r.correct)
	l.NegEnt.add(r.negent, r.w, r.wf, r.correct)
	if !math.IsNaN(r.served) {
		l.Served.add(r.served, r.w, r.wf, r.correct)
	}
}

// Total returns the number of labelled rows and Σw.
func (l *Labelled) Total() (n int64, w float64) { return l.Scores.Total() }

func (l *Labelled) empty() bool { return l.Scores.n == 0 && l.Sample.Len() == 0 }

// Merge adds the rows of o, which stays as it is. Another configuration is ErrShape. After an error nothing has
// changed.
func (l *Labelled) Merge(o *Labelled) error {
	if err := l.check(o); err != nil {
		return err
	}
	l.merge(o)
	return nil
}

func (l *Labelled) check(o *Labelled) error {
	if err := l.Soft.check(o.Soft); err != nil {
		return err
	}
	if err := l.ClassWise.check(o.ClassWise); err != nil {
		return err
	}
	if err := l.Sample.check(o.Sample); err != nil {
		return err
	}
	if err := l.Scores.check(&o.Scores); err != nil {
		return err
	}
	return l.Lag.check(&o.Lag)
}

func (l *Labelled) merge(o *Labelled) {
	l.Scores, _ = l.Scores.plus(&o.Scores)
	l.MSP.merge(&o.MSP)
	l.Margin.merge(&o.Margin)
	l.NegEnt.merge(&o.NegEnt)
	l.Served.merge(&o.Served)
	l.Soft.merge(o.Soft)
	l.ClassWise.merge(o.ClassWise)
	l.Lag.merge(&o.Lag)
	l.Sample.merge(o.Sample)
}

// Reset empties all and keeps the memory.
func (l *Labelled) Reset() {
	l.MSP.Reset()
	l.Margin.Reset()
	l.NegEnt.Reset()
	l.Served.Reset()
	l.Soft.Reset()
	l.ClassWise.Reset()
	l.Scores.Reset()
	l.Lag.Reset()
	l.Sample.Reset()
}

// Clone returns a deep copy.
func (l *Labelled) Clone() *Labelled {
	return &Labelled{
		*l.MSP.Clone(), *l.Margin.Clone(), *l.NegEnt.Clone(), *l.Served.Clone(),
		l.Soft.Clone(), l.ClassWise.Clone(), l.Scores, l.Lag, l.Sample.Clone(),
	}
}

const labelledVersion = 1

// AppendBinary appends the encoding: u8 version, then the blocks of the grids of msp, margin, negent and served, of the
// soft bins, the class-wise bins, the scores, the lags and the sample.
func (l *Labelled) AppendBinary(b []byte) ([]byte, error) {
	return appendParts(append(b, labelledVersion),
		&l.MSP, &l.Margin, &l.NegEnt, &l.Served, l.Soft, l.ClassWise, &l.Scores, &l.Lag, l.Sample)
}

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
func (l *Labelled) UnmarshalBinary(data []byte) error {
	d := new(Decoder)
	n := d.newLabelled()
	if err := n.decode(data, d); err != nil {
		return err
	}
	*l = *n
	return nil
}

// decode decodes into one of Decoder.newLabelled.
func (l *Labelled) decode(data []byte, d *Decoder) error {
	r := binenc.NewReader(data)
	r.Version(labelledVersion)
	for _, decode := range [...]func([]byte, *Decoder) error{
		l.MSP.decode, l.Margin.decode, l.NegEnt.decode, l.Served.decode, l.Soft.decode, l.ClassWise.decode,
		l.Scores.decode, l.Lag.decode, l.Sample.decode,
	} {
		if err := readPart(&r, decode, d); err != nil {
			return fmt.Errorf("decode labelled: %w", err)
		}
	}
	err := r.Close()
	if err == nil {
		err = l.consistent()
	}
	if err != nil {
		return fmt.Errorf("decode labelled: %w", err)
	}
	return nil
}

// consistent checks the invariant, on which the single overflow check of add relies.
func (l *Labelled) consistent() error {
	n, w := l.Scores.n, l.Scores.w
	switch {
	case !l.MSP.sameTotal(n, w), !l.Margin.sameTotal(n, w), !l.NegEnt.sameTotal(n, w),
		l.Soft.n != n, l.Soft.w != w, l.ClassWise.n != n, l.ClassWise.w != w, l.Lag.n != n:
		return fmt.Errorf("parts are of different rows than the %d of scores: %w", n, ErrCorrupt)
	case l.Served.n > n, l.Served.w > w:
		return fmt.Errorf("%d served rows of %d: %w", l.Served.n, n, ErrCorrupt)
	case l.ClassWise.k != l.Sample.k:
		return fmt.Errorf("sample of %d classes, class-wise of %d: %w", l.Sample.k, l.ClassWise.k, ErrCorrupt)
	}
	return nil
}

type part interface {
	AppendBinary([]byte) ([]byte, error)
}

// appendParts appends each part, preceded by its length.
func appendParts(b []byte, parts ...part) ([]byte, error) {
	var err error
	for _, p := range parts {
		if b, err = binenc.AppendBlock(b, p.AppendBinary); err != nil {
			return b, err
		}
	}
	return b, nil
}

// replace decodes data into a new accumulator, so that to is as it was after an error.
func replace[T any, P interface {
	*T
	decode(data []byte, d *Decoder) error
}](to P, data []byte) error {
	var n T
	if err := P(&n).decode(data, new(Decoder)); err != nil {
		return err
	}
	*to = n
	return nil
}

// readPart reads one part.
func readPart(r *binenc.Reader, decode func([]byte, *Decoder) error, d *Decoder) error {
	body := r.Bytes(r.Len())
	if r.Err() != nil {
		return r.Err()
	}
	return decode(body, d)
}
