package acc

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/binenc"
)

var (
	// ErrShape is for two accumulators of different configuration, or a row of another K. A mistake of the
	// configuration.
	ErrShape = errors.New("different shape")
	// ErrOverflow is for a sum would leave its range; nothing was changed. Close the pane or window earlier.
	ErrOverflow = errors.New("sum overflows")
	// ErrValue is for a row with a value outside its range (NaN included); nothing was changed. Reject the row.
	ErrValue = errors.New("value out of range")
	// ErrCorrupt is for bytes that are not an encoding of this type; the receiver is unchanged.
	ErrCorrupt = binenc.ErrCorrupt
)

// Config is the shape of a Set. Only sets with the same shape merge, but the capacities of their samples may differ.
type Config struct {
	K               int     // classes, at least 2
	Bins            int     // class-wise bins M; 0 = 15
	SoftBins        int     // 0 = 15
	SoftTemperature float64 // 0 = 0.01
	// SampleRows is the capacity of the sample; 0 = no sample. SampleBytes bounds its scores: 4·K·rows is at most
	// SampleBytes, but one row is always kept; 0 = no bound.
	SampleRows, SampleBytes int
	SampleSeed              uint64
}

// Defaults of Config.
const (
	DefaultBins            = 15
	DefaultSoftTemperature = 0.01
)

// normal returns c with its defaults filled in and the bound on the sample's bytes applied.
func (c Config) normal() Config {
	if c.Bins == 0 {
		c.Bins = DefaultBins
	}
	if c.SoftBins == 0 {
		c.SoftBins = DefaultBins
	}
	if c.SoftTemperature == 0 {
		c.SoftTemperature = DefaultSoftTemperature
	}
	if c.SampleBytes > 0 && c.SampleRows > 0 && c.K > 0 {
		c.SampleRows = max(1, min(c.SampleRows, c.SampleBytes/(4*c.K)))
	}
	c.SampleBytes = 0
	return c
}

// Append appends a configuration, as Set.Config returns it.
func (c Config) Append(b []byte) []byte {
	b = binenc.AppendUvarint(b, uint64(c.K))
	b = binenc.AppendUvarint(b, uint64(c.Bins))
	b = binenc.AppendUvarint(b, uint64(c.SoftBins))
	b = binenc.AppendFloat64(b, c.SoftTemperature)
	b = binenc.AppendUvarint(b, uint64(c.SampleRows))
	return binenc.AppendFixed64(b, c.SampleSeed)
}

// ReadConfig reads what Config.Append wrote.
func ReadConfig(r *binenc.Reader) Config {
	return Config{
		K:               int(r.Int("classes", 2, MaxClasses)),
		Bins:            int(r.Int("bins", 1, maxBins)),
		SoftBins:        int(r.Int("soft bins", 1, maxBins)),
		SoftTemperature: r.Float64(),
		SampleRows:      int(r.Int("sample rows", 0, maxSampleRows)),
		SampleSeed:      r.Fixed64(),
	}
}

// Merges reports whether sets of normalised configurations can be merged: all is equal but the capacity of the sample.
func (c Config) Merges(o Config) bool {
	c.SampleRows = o.SampleRows
	return c == o
}

// check returns ErrShape unless the normalised c is valid; it allocates nothing that depends on K.
func (c Config) check() error {
	if err := checkClassWise(c.K, c.Bins); err != nil {
		return err
	}
	if err := checkSoft(c.SoftBins, c.SoftTemperature); err != nil {
		return err
	}
	return checkSample(c.K, c.SampleRows)
}

// Set holds all that is known of one key in one pane. Make it with New; the zero value only decodes.
type Set struct {
	cfg Config
	lnK float64
	// Seen and Labelled are nil until their first row: most cells of late labels have no predictions of their own. Seen
	// may lack rows of BothRows; whatever is encoded, cloned or merged has them.
	Seen     *Seen
	Labelled *Labelled
	classCounting

	owed   bool // Seen lacks the rows of Labelled, all of which are predictions of the set too (BothRows)
	pieced bool // it lies in pieces of a Decoder
}

// New returns an empty set, or ErrShape with the field that is out of range.
func New(cfg Config) (*Set, error) {
	cfg = cfg.normal()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Set{cfg: cfg, lnK: log(float64(cfg.K))}, nil
}

// Settings returns the configuration with the defaults filled in; SampleRows has the bound of SampleBytes applied.
func (s *Set) Settings() Config { return s.cfg }

// Predict adds a prediction, labelled or not, with weight w. A row of the block kernel must have been settled
// (kernel.Row.Settle), or its bins may be others than those of float64.
func (s *Set) Predict(r kernel.Row, w float64) error {
	f, err := s.scores(&r)
	if err != nil {
		return err
	}
	if err := checkWeight(w); err != nil {
		return err
	}
	if settle(s); s.Seen == nil {
		s.Seen = &Seen{}
	}
	if err := s.Seen.add(f, w); err != nil {
		return err
	}
	if c := s.counted(s.cfg.K); c != nil {
		c.predict(symbol(&r), fix(w))
	}
	return nil
}

// Truth is what a label tells about a row.
type Truth struct {
	Class  int
	NLL    float64 // -ln p of the class, from the logits
	Weight float64
	Lag    int64   // nanoseconds, the label's time minus the prediction's
	Served float64 // the confidence that was served; NaN = absent
}

// Label adds a labelled row of K probabilities p. It is correct where r.Arg is the class. After an error nothing has
// changed.
func (s *Set) Label(r kernel.Row, p []float64, t Truth) error {
	if err := checkProbs(p, s.cfg.K, t.Class); err != nil {
		return err
	}
	row, err := s.checkLabel(&r, t)
	if err != nil {
		return err
	}
	row.brier = kernel.Brier(r, p[t.Class])
	if err := s.Labelled.add(&row, p, t.Class); err != nil {
		return err
	}
	if c := s.counted(s.cfg.K); c != nil {
		c.label(symbol(&r), t.Class, fix(t.Weight))
	}
	return nil
}

// LabelScaled is Label of a row as kernel.LogitRows or kernel.ProbRows leaves it, p_k = min(1, float64(v_k)·r.Scale),
// one row at a time (LabelRows is for many). z are the logits that v came from, nil where v are probabilities; they are
// looked at where a v_k is 0, to tell 0 in float32 from 0 in float64 (kernel.Row.Underflows), and where a probability
// is beside an edge: the row is settled first (kernel.Row.Settle).
func (s *Set) LabelScaled(r kernel.Row, v, z []float32, t Truth) error {
	x := exactOf(&r, v, z)
	if len(x.Scores) == s.cfg.K {
		r.Settle(x.Scores, x.Probs)
	}
	row, err := s.checkLabel(&r, t)
	if err != nil {
		return err
	}
	l := s.Labelled
	if err := l.ClassWise.checkScaled(&r, v, z, t.Class); err != nil {
		return err
	}
	row.brier = kernel.Brier(r, min(float64(v[t.Class])*r.Scale, 1))
	if err := l.fits(&row); err != nil {
		return err
	}
	if err := l.ClassWise.addScaled(&x, v, t.Class, row.w, row.wf); err != nil {
		return err
	}
	l.addScores(&row)
	if c := s.counted(s.cfg.K); c != nil {
		c.label(symbol(&r), t.Class, fix(t.Weight))
	}
	return nil
}

// checkLabel checks what labelled rows of both forms have in common and makes the labelled part. The row has all but
// the Brier score.
func (s *Set) checkLabel(r *kernel.Row, t Truth) (labelRow, error) {
	f, err := s.scores(r)
	if err != nil {
		return labelRow{}, err
	}
	if err := checkWeight(t.Weight); err != nil {
		return labelRow{}, err
	}
	if !math.IsNaN(t.Served) {
		if err := checkUnit("served", t.Served); err != nil {
			return labelRow{}, err
		}
	}
	settle(s)
	if s.Labelled == nil {
		s.Labelled, err = newLabelled(s.cfg)
	}
	return labelRow{
		confidences: f, nll: t.NLL, w: t.Weight, wf: fix(t.Weight), lag: t.Lag, served: t.Served,
		correct: r.Arg == t.Class,
	}, err
}

// Samples reports whether a labelled row with an id could enter the sample. For others AddSample does nothing.
func (s *Set) Samples(id [16]byte) bool { return s.Labelled == nil || s.Labelled.Sample.takes(id) }

// AddSample offers a labelled row to the sample; it copies Z.
func (s *Set) AddSample(r SampleRow) error {
	if len(r.Z) != s.cfg.K {
		return fmt.Errorf("sample a row of %d scores for %d classes: %w", len(r.Z), s.cfg.K, ErrShape)
	}
	if s.Labelled == nil {
		var err error
		if s.Labelled, err = newLabelled(s.cfg); err != nil {
			return err
		}
	}
	return s.Labelled.Sample.Add(r)
}

// confidences are a row's three confidence score functions, each on [0,1].
type confidences struct{ msp, margin, negent float64 }

func (s *Set) scores(r *kernel.Row) (confidences, error) { return confidencesOf(r, s.lnK) }

func confidencesOf(r *kernel.Row, lnK float64) (confidences, error) {
	f := confidences{clamp(r.Conf), clamp(r.Margin()), clamp(1 - r.Entropy/lnK)}
	if !(f.msp >= 0 && f.margin >= 0 && f.negent >= 0) {
		return f, fmt.Errorf("confidence is %v, margin %v, entropy %v, allowed numbers: %w", r.Conf, r.Margin(),
			r.Entropy, ErrValue)
	}
	return f, nil
}

// clamp takes off what rounding put outside [0,1]; NaN stays.
func clamp(x float64) float64 {
	if x >= 0 && x <= 1 {
		return x
	}
	return max(0, min(x, 1))
}

// Merge adds the rows of o, which stays as it is. Of two capacities of samples the smaller counts; another difference
// of the configurations is ErrShape. After an error nothing has changed.
func (s *Set) Merge(o *Set) error {
	if !s.cfg.Merges(o.cfg) {
		return fmt.Errorf("merge set %+v into %+v: %w", o.cfg, s.cfg, ErrShape)
	}
	settle(s)
	seen := settledSeen(o)
	if s.Seen != nil && seen != nil {
		if err := s.Seen.check(seen); err != nil {
			return err
		}
	}
	if s.Labelled != nil && o.Labelled != nil {
		if err := s.Labelled.check(o.Labelled); err != nil {
			return err
		}
	}
	switch {
	case seen == nil:
	case s.Seen == nil:
		s.Seen = seen.Clone()
	default:
		s.Seen.merge(seen)
	}
	switch {
	case o.Labelled == nil:
	case s.Labelled == nil:
		s.Labelled = o.Labelled.Clone()
	default:
		s.Labelled.merge(o.Labelled)
	}
	s.cfg.SampleRows = min(s.cfg.SampleRows, o.cfg.SampleRows)
	if s.Labelled != nil {
		s.Labelled.Sample.bound(s.cfg.SampleRows)
	}
	s.mergeClasses(&o.classCounting)
	return nil
}

// Pieced reports whether the set shares memory with others that the same Decoder has decoded. That memory is freed
// only when all of them are, so keep no such set for reuse.
func (s *Set) Pieced() bool { return s.pieced }

// Reset empties the set and keeps the memory.
func (s *Set) Reset() {
	s.owed = false
	if s.Seen != nil {
		s.Seen.Reset()
	}
	if s.Labelled != nil {
		s.Labelled.Reset()
	}
	if s.Classes != nil {
		s.Classes.Reset()
	}
}

// Clone returns a deep copy.
func (s *Set) Clone() *Set {
	d := *s
	d.pieced, d.owed = false, false
	if seen := settledSeen(s); seen != nil {
		d.Seen = seen.Clone()
	}
	if s.Labelled != nil {
		d.Labelled = s.Labelled.Clone()
	}
	if s.Classes != nil {
		d.Classes = s.Classes.Clone()
	}
	return &d
}

const (
	setVersion  = 1
	hasSeen     = 1
	hasLabelled = 2
	hasClasses  = 4 // readers before it refuse it by its number
)

// AppendBinary appends the encoding: u8 version; uvarint K, M, soft bins M; f64 T; uvarint sample capacity; fixed64
// seed; u8 parts; block(Seen) if parts & 1, block(Labelled) if parts & 2, block(ClassCounts) if parts & 4. A part
// without rows is left out. All parts of Labelled but served and sample have the same N and Σw, all grids of Seen
// too; a reader refuses others.
func (s *Set) AppendBinary(b []byte) ([]byte, error) {
	var parts byte
	seen := settledSeen(s)
	if seen != nil && !seen.empty() {
		parts |= hasSeen
	}
	if s.Labelled != nil && !s.Labelled.empty() {
		parts |= hasLabelled
	}
	if s.Classes != nil && !s.Classes.empty() {
		parts |= hasClasses
	}
	b = append(s.cfg.Append(append(b, setVersion)), parts)
	var err error
	if parts&hasSeen != 0 {
		if b, err = binenc.AppendBlock(b, seen.AppendBinary); err != nil {
			return b, err
		}
	}
	if parts&hasLabelled != 0 {
		if b, err = binenc.AppendBlock(b, s.Labelled.AppendBinary); err != nil {
			return b, err
		}
	}
	if parts&hasClasses != 0 {
		return binenc.AppendBlock(b, s.Classes.AppendBinary)
	}
	return b, nil
}

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
// A reader that expects a configuration compares Config, or lets Merge do it.
func (s *Set) UnmarshalBinary(data []byte) error {
	d := single.Get().(*Decoder)
	defer single.Put(d)
	n, err := d.DecodeSet(data)
	if err != nil {
		return err
	}
	*s = *n
	return nil
}

// set decodes into a new set.
func (d *Decoder) set(s *Set, data []byte) error {
	r := binenc.NewReader(data)
	r.Version(setVersion)
	cfg := ReadConfig(&r)
	parts := r.Byte()
	if parts > hasSeen|hasLabelled|hasClasses {
		r.Failf("parts is %d, allowed 0 to %d", parts, hasSeen|hasLabelled|hasClasses)
	}
	var seen, labelled, classes []byte
	if parts&hasSeen != 0 {
		seen = r.Bytes(r.Len())
	}
	if parts&hasLabelled != 0 {
		labelled = r.Bytes(r.Len())
	}
	if parts&hasClasses != 0 {
		classes = r.Bytes(r.Len())
	}
	if err := r.Close(); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	s.cfg, s.lnK, s.pieced = cfg, d.lnClasses(cfg.K), d.sets.piece > 0
	if parts&hasSeen != 0 {
		s.Seen = d.seen.one()
		if err := s.Seen.decode(seen, d); err != nil {
			return err
		}
		if s.Seen.empty() {
			return fmt.Errorf("an empty part: %w", ErrCorrupt)
		}
	}
	if parts&hasLabelled != 0 {
		s.Labelled = d.newLabelled()
		if err := s.Labelled.decode(labelled, d); err != nil {
			return err
		}
		if got := s.Labelled.config(); got != cfg || s.Labelled.empty() {
			return fmt.Errorf("labelled part is %+v, set %+v: %w", got, cfg, ErrCorrupt)
		}
	}
	if parts&hasClasses != 0 {
		return s.decodeClasses(classes)
	}
	return nil
}

// LabelledRows is the number of labelled rows.
func (s *Set) LabelledRows() int64 {
	if s.Labelled == nil {
		return 0
	}
	n, _ := s.Labelled.Total()
	return n
}

// SeenRows is the number of predictions, and their mean confidence: NaN where there are none.
func (s *Set) SeenRows() (n int64, confidence float64) {
	if settle(s); s.Seen == nil {
		return 0, math.NaN()
	}
	n, _ = s.Seen.Total()
	return n, s.Seen.MSP.MeanConfidence()
}

// Modest reports whether a thousand sets like s can be merged without ErrOverflow.
func Modest(s *Set) bool {
	const most = math.MaxInt64 >> 10
	if seen := settledSeen(s); seen != nil && (seen.MSP.n > most || seen.MSP.w > most) {
		return false
	}
	l := s.Labelled
	if l == nil {
		return true
	}
	n, w := l.MSP.n, l.MSP.w
	for _, sum := range [...]i128{l.Scores.w2, l.Scores.nll, l.Scores.brier, l.Lag.sum} {
		if sum.hi > most || sum.hi < -most {
			return false
		}
	}
	return n <= most && w <= most && l.Lag.n <= most
}

// Memory returns the bytes of memory that the set holds, which grow with the cells that its rows have touched
// (docs/format.md, Accumulators). A set keeps them when it is reset.
func (s *Set) Memory() int {
	n := int(unsafe.Sizeof(*s))
	if s.Seen != nil {
		n += int(unsafe.Sizeof(*s.Seen)) + s.Seen.MSP.t.bytes() + s.Seen.Margin.t.bytes() + s.Seen.NegEnt.t.bytes()
	}
	if l := s.Labelled; l != nil {
		n += int(unsafe.Sizeof(*l)) + l.MSP.t.bytes() + l.Margin.t.bytes() + l.NegEnt.t.bytes() + l.Served.t.bytes()
		n += l.Soft.bytes() + l.ClassWise.bytes() + l.Sample.bytes()
	}
	if c := s.Classes; c != nil {
		n += int(unsafe.Sizeof(*c)) + c.cells.bytes() + c.wrong.bytes() + c.buffer.bytes()
	}
	return n
}

const word = 8 // bytes of an int64 or a float64

func (b *SoftBins) bytes() int {
	return int(unsafe.Sizeof(*b)) + word*(softFields*len(b.u)+len(b.u)+len(b.gauss))
}

func (c *ClassWise) bytes() int {
	return int(unsafe.Sizeof(*c)) + word*(cap(c.dense)+len(c.edges)) + c.t.bytes()
}

func (s *Sample) bytes() int {
	return int(unsafe.Sizeof(*s)) + int(unsafe.Sizeof(ranked{}))*cap(s.heap) +
		int(unsafe.Sizeof(sampled{}))*cap(s.rows) + 4*cap(s.slab)
}

// TakeSample returns the sampled rows, in the order of their hashes, and drops the sample: the set then has the
// shape of one made with SampleRows = 0 and merges with those. The rows own their memory.
func (s *Set) TakeSample() []SampleRow {
	s.cfg.SampleRows = 0
	if s.Labelled == nil {
		return nil
	}
	rows := s.Labelled.Sample.Rows()
	s.Labelled.Sample = &Sample{k: s.cfg.K, seed: s.cfg.SampleSeed}
	return rows
}
