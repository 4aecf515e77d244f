package feed

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/arrowio"
)

// Rows is a table in memory: N rows. Optional columns are nil where absent.
type Rows struct {
	Model, Version   string
	Models, Versions []string // of each row; nil where all rows are of Model, or of Version

	N      int
	K      int
	Scores []float32 // N×K
	Probs  bool
	Label  []int32 // -1 = never known

	IDs      []string
	TS       []arrowio.Time
	NoTime   error // why TS is nil; may be nil too
	D        int
	Features []float32 // N×D
	Served   []float32
	Weight   []float32
	Slices   []Column
}

// Column is one slice column.
type Column struct {
	Name   string
	Values []string
}

// Order is the order in which the rows of a table are fed.
type Order struct {
	Shuffle bool
	Seed    uint64
	// passes over the table; 0 and 1 are one. Each is shuffled anew, and ids get the suffix -r1, -r2, … from the second
	// on
	Repeat int
	// ByTime feeds the rows in order of their own times (stable), and their times with them. It excludes Shuffle and
	// Repeat.
	ByTime bool
}

// Open returns a source over r, which must not change while it is read.
func (r *Rows) Open(o Order) (Source, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	switch {
	case o.Repeat < 0:
		return nil, fmt.Errorf("repeat %d: must not be negative", o.Repeat)
	case o.ByTime && r.TS == nil && r.NoTime != nil:
		return nil, fmt.Errorf("order by time: %w", r.NoTime)
	case o.ByTime && r.TS == nil:
		return nil, fmt.Errorf("order by time: the table has no column ts")
	case o.ByTime && (o.Shuffle || o.Repeat > 1):
		return nil, fmt.Errorf("order by time: excludes shuffling and repetition; give an event rate instead")
	}
	c := &cursor{rows: r, order: o, index: make([]int, r.N)}
	for _, s := range r.Slices {
		c.names = append(c.names, s.Name)
	}
	c.values = make([]string, len(c.names))
	c.arrange()
	return c, nil
}

func (r *Rows) validate() error {
	check := func(column string, got, want int, present bool) error {
		if present && got != want {
			return fmt.Errorf("column %s: %d values for %d rows, want %d", column, got, r.N, want)
		}
		return nil
	}
	if r.K < 1 {
		return fmt.Errorf("number of classes %d: must be at least 1", r.K)
	}
	if r.N < 0 {
		return fmt.Errorf("number of rows %d: must not be negative", r.N)
	}
	errs := []error{
		check("scores", len(r.Scores), r.N*r.K, true),
		check("label", len(r.Label), r.N, r.Label != nil),
		check("id", len(r.IDs), r.N, r.IDs != nil),
		check("model", len(r.Models), r.N, r.Models != nil),
		check("version", len(r.Versions), r.N, r.Versions != nil),
		check("ts", len(r.TS), r.N, r.TS != nil),
		check("features", len(r.Features), r.N*r.D, true),
		check("served", len(r.Served), r.N, r.Served != nil),
		check("weight", len(r.Weight), r.N, r.Weight != nil),
	}
	for _, s := range r.Slices {
		errs = append(errs, check(s.Name, len(s.Values), r.N, true))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// cursor reads Rows in an Order.
type cursor struct {
	rows   *Rows
	order  Order
	index  []int // rows of the present pass, in order
	at     int   // position in index
	pass   int
	names  []string
	values []string
}

func (c *cursor) Schema() Fields {
	r := c.rows
	return Fields{
		Model:    r.Model,
		Version:  r.Version,
		Models:   r.Models != nil,
		Versions: r.Versions != nil,
		K:        r.K,
		Probs:    r.Probs,
		D:        r.D,
		Times:    c.order.ByTime,
		Left:     r.TS != nil && !c.order.ByTime,
		Served:   r.Served != nil,
		Weight:   r.Weight != nil,
		Slices:   c.names,
	}
}

// arrange fills the index for the present pass.
func (c *cursor) arrange() {
	for i := range c.index {
		c.index[i] = i
	}
	switch {
	case c.order.ByTime:
		slices.SortStableFunc(c.index, func(a, b int) int { return cmp.Compare(c.rows.TS[a], c.rows.TS[b]) })
	case c.order.Shuffle:
		shuffle(c.index, splitmix(c.order.Seed, uint64(c.pass)))
	}
}

// shuffle is Fisher and Yates'. Taking the hash modulo i+1 is off from uniform by at most n/2⁶⁴.
func shuffle(index []int, seed uint64) {
	for i := len(index) - 1; i > 0; i-- {
		j := int(splitmix(seed, uint64(i)) % uint64(i+1))
		index[i], index[j] = index[j], index[i]
	}
}

func (c *cursor) Next(row *Row) error {
	if c.at == len(c.index) {
		if c.pass+1 >= c.order.Repeat || len(c.index) == 0 {
			return io.EOF
		}
		c.pass++
		c.at = 0
		c.arrange()
	}
	c.read(row, c.index[c.at])
	c.at++
	return nil
}

func (c *cursor) read(row *Row, i int) {
	r := c.rows
	*row = Row{Scores: r.Scores[i*r.K : (i+1)*r.K], Label: -1, Features: r.Features[i*r.D : (i+1)*r.D], Weight: 1,
		Slices: c.values}
	if r.Label != nil {
		row.Label = r.Label[i]
	}
	if r.IDs != nil {
		row.ID = r.IDs[i]
		if c.pass > 0 {
			row.ID += "-r" + strconv.Itoa(c.pass)
		}
	}
	if r.Models != nil {
		row.Model = r.Models[i]
	}
	if r.Versions != nil {
		row.Version = r.Versions[i]
	}
	if r.TS != nil {
		row.Time = r.TS[i]
	}
	if r.Served != nil {
		row.Served = r.Served[i]
	}
	if r.Weight != nil {
		row.Weight = r.Weight[i]
	}
	for s := range r.Slices {
		c.values[s] = r.Slices[s].Values[i]
	}
}
