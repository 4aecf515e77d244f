package arrowio

import (
	"errors"
	"math"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// DecodeError says why a whole message is refused: it becomes a dead letter.
// Reason is one of the constants of package wire.
type DecodeError = wire.FormatError

// Limits of a message by default, which senders must know: for one value beyond them all of it is refused.
const (
	DefaultMaxClasses  = 1 << 17
	DefaultMaxFeatures = 1 << 16 // of a row
	DefaultMaxText     = 256     // bytes of a model, a version, the name or the value of a slice
)

// Options bound what a message may hold. Zero values mean the defaults.
type Options struct {
	Slices          []string // names of the slice columns
	MaxMessageBytes int      // default 64 MiB
	MaxRows         int      // by message; default 2^20
	MaxBatches      int      // record batches by message; default 4096
	MaxClasses      int      // default DefaultMaxClasses
	MaxFeatures     int      // features by row; default DefaultMaxFeatures
	MaxFields       int      // schema fields, nested ones included; default 4096
	MaxText         int      // bytes of a model, version or slice value; default DefaultMaxText
	Schemas         int      // parsed schemas kept; default 4096
	// Inflate allows lz4 and zstd bodies, up to MaxInflated bytes by message (default 256 MiB). Off by
	// default: compress in Kafka instead.
	Inflate     bool
	MaxInflated int
}

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxMessageBytes, 64<<20)
	def(&o.MaxRows, 1<<20)
	def(&o.MaxBatches, 4096)
	def(&o.MaxClasses, DefaultMaxClasses)
	def(&o.MaxFeatures, DefaultMaxFeatures)
	def(&o.MaxFields, 4096)
	def(&o.MaxText, DefaultMaxText)
	def(&o.Schemas, 4096)
	def(&o.MaxInflated, 256<<20)
	o.MaxRows = min(o.MaxRows, math.MaxInt32)
}

// Decoder decodes messages. Not safe for concurrent use; one a shard. Its batches may be released anywhere.
type Decoder struct {
	opt      Options
	plans    planCache
	inflater *wire.Inflater
	offsets  []int64 // scratch of wire.Offsets
	last     *plan   // of the message that was decoded last
}

// NewDecoder makes a decoder with the given bounds.
func NewDecoder(o Options) *Decoder {
	o.setDefaults()
	d := &Decoder{opt: o, plans: planCache{max: o.Schemas}}
	if o.Inflate {
		d.inflater = &wire.Inflater{}
	}
	return d
}

// Decode decodes the value of one Kafka record: an Arrow IPC stream with one schema and any number of
// record batches, each of which gives a Batch (none for a batch without rows). All or nothing: an error
// is a *DecodeError and no batch is returned. Batches share the memory of value, which must not change
// while they live; see Batch.Release. Only the label columns are read for kind Labels, whose Models are
// {"", ""} where the message does not name one.
func (d *Decoder) Decode(value []byte, o Origin, kind Kind) (out []*Batch, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, wire.Errorf(wire.Panicked, "%v", r)
		}
		if err != nil {
			for _, b := range out {
				b.Release()
			}
			out = nil
			var de *DecodeError
			if !errors.As(err, &de) {
				err = wire.Errorf(wire.Panicked, "%v", err)
			}
		}
	}()
	if kind != Predictions && kind != Labels {
		panic("arrowio: only predictions and labels are decoded")
	}
	if len(value) == 0 {
		return nil, wire.Errorf(wire.NotArrow, "empty value")
	}
	if len(value) > d.opt.MaxMessageBytes {
		return nil, wire.Errorf(wire.TooLarge, "message of %d bytes, at most %d", len(value), d.opt.MaxMessageBytes)
	}
	if d.inflater != nil {
		d.inflater.Budget = int64(d.opt.MaxInflated)
	}
	return d.stream(value, o, kind)
}

// stream walks the messages of an IPC stream.
func (d *Decoder) stream(value []byte, o Origin, kind Kind) (out []*Batch, err error) {
	first, rest, end, _, err := wire.Next(value)
	if err != nil {
		return nil, err
	}
	if end {
		return nil, wire.Errorf(wire.NoSchema, "stream ends before its schema")
	}
	p, err := d.planOf(first, kind)
	if err != nil {
		return nil, err
	}
	d.last = p
	r := reader{
		d:      d,
		plan:   p,
		origin: o,
		kind:   kind,
		left:   d.opt.MaxRows,
		sparse: wire.SparseValues(len(value)),
	}
	for {
		var m wire.Message
		var marked bool
		if m, rest, end, marked, err = wire.Next(rest); err != nil {
			return r.out, err
		}
		if end {
			return r.out, checkEnd(len(rest), r.count, marked)
		}
		if err := r.message(m); err != nil {
			return r.out, err
		}
	}
}

// message reads a message behind the schema.
func (r *reader) message(m wire.Message) error {
	switch m.Header {
	case wire.HeaderSchema:
		return wire.Errorf(wire.NoSchema, "a second schema in one stream")
	case wire.HeaderDictionary:
		return r.readDictionary(m)
	}
	if r.count++; r.count > r.d.opt.MaxBatches {
		return wire.Errorf(wire.TooLarge, "more than %d record batches", r.d.opt.MaxBatches)
	}
	return r.batch(m)
}

// checkEnd refuses streams that lost rows: one cut before its first batch, and two streams glued together.
func checkEnd(rest, batches int, marked bool) error {
	if rest > 0 {
		return wire.Errorf(wire.Trailing, "%d bytes after the end-of-stream marker", rest)
	}
	if batches == 0 && !marked {
		return wire.Errorf(wire.Truncated, "neither a record batch nor an end-of-stream marker after the schema")
	}
	return nil
}
