package feed

import (
	"fmt"

	"github.com/plumbline/plumbline/arrowio"
)

// pending are the rows of one (stream, partition) that wait for their message.
type pending struct {
	group int          // the source whose schema they have
	first arrowio.Time // of the oldest row; meaningful where cols has rows
	row   int64        // the lowest number of a row
	cols  arrowio.Columns
}

func (p *pending) rows() int { return len(p.cols.IDs) }

// full reports whether one row more would be beyond the bounds of a message.
func (p *pending) full(o *Options) bool {
	const numberBytes = 4 // of a float32
	n, c := p.rows(), &p.cols
	bytes := numberBytes * (len(c.Logits) + len(c.Probs) + len(c.Features))
	return n >= o.Batch || o.MessageBytes > 0 && bytes+bytes/n > o.MessageBytes
}

// addRow appends the columns of a prediction that has been stamped.
func (p *pending) addRow(s *Fields, row *Row, inline bool) {
	c := &p.cols
	p.name(s, row.Model, row.Version)
	if s.Probs {
		c.Probs = append(c.Probs, row.Scores...)
	} else {
		c.Logits = append(c.Logits, row.Scores...)
	}
	c.Features = append(c.Features, row.Features...)
	if inline {
		c.Label = append(c.Label, row.Label)
	}
	if s.Served {
		c.Served = append(c.Served, row.Served)
	}
	if s.Weight {
		c.Weight = append(c.Weight, row.Weight)
	}
	if c.Slices == nil && len(s.Slices) > 0 {
		c.Slices = make([]arrowio.StringColumn, len(s.Slices))
	}
	for i, v := range row.Slices {
		c.Slices[i].Values = append(c.Slices[i].Values, v)
	}
}

// addLabel appends a label.
func (p *pending) addLabel(s *Fields, l *label) {
	p.stamp(l.row, l.id, l.time)
	p.name(s, l.model, l.version)
	p.cols.Label = append(p.cols.Label, l.class)
}

func (p *pending) stamp(row int64, id string, t arrowio.Time) {
	if p.rows() == 0 {
		p.first, p.row = t, row
	}
	p.row = min(p.row, row)
	p.cols.IDs = append(p.cols.IDs, id)
	p.cols.TS = append(p.cols.TS, t)
}

// name says of which model and version the row is, where the source's rows say it themselves.
func (p *pending) name(s *Fields, model, version string) {
	if s.Models {
		p.cols.Models = append(p.cols.Models, model)
	}
	if s.Versions {
		p.cols.Versions = append(p.cols.Versions, version)
	}
}

// reset empties p and keeps its memory.
func (p *pending) reset() {
	c := &p.cols
	for _, text := range []*[]string{&c.IDs, &c.Models, &c.Versions} {
		clear(*text)
		*text = (*text)[:0]
	}
	c.TS, c.Label = c.TS[:0], c.Label[:0]
	c.Logits, c.Probs, c.Features = c.Logits[:0], c.Probs[:0], c.Features[:0]
	c.Served, c.Weight = c.Served[:0], c.Weight[:0]
	for i := range c.Slices {
		clear(c.Slices[i].Values)
		c.Slices[i].Values = c.Slices[i].Values[:0]
	}
}

// message encodes the rows of p, which has some, as one of model and version, and empties p.
func (p *pending) message(stream Stream, partition int32, s *Fields) (Message, error) {
	c := p.cols
	var value []byte
	var err error
	if stream == Labels {
		c.Model, c.Version = s.Model, s.Version
		value, err = arrowio.EncodeLabelRows(c)
	} else {
		value, err = arrowio.EncodePredictions(p.columns(s))
	}
	if err != nil {
		return Message{}, fmt.Errorf("encode %d rows of %v for partition %d: %w", p.rows(), stream, partition, err)
	}
	n := p.rows()
	m := Message{Stream: stream, Partition: partition, Key: []byte(c.IDs[0]), Value: value, Rows: n,
		Row: p.row, First: c.TS[0], Time: c.TS[n-1]}
	p.reset()
	return m, nil
}

// columns is what the encoder takes: nil for what the source does not have, as empty and absent differ there.
func (p *pending) columns(s *Fields) arrowio.Columns {
	c := p.cols
	c.Model, c.Version, c.K, c.D = s.Model, s.Version, s.K, s.D
	c.Logits, c.Probs = present(c.Logits), present(c.Probs)
	c.Label, c.Features = present(c.Label), present(c.Features)
	c.Served, c.Weight = present(c.Served), present(c.Weight)
	for i := range c.Slices {
		c.Slices[i].Name = s.Slices[i]
	}
	return c
}

func present[T any](v []T) []T {
	if len(v) == 0 {
		return nil
	}
	return v
}
