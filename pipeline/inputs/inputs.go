package inputs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/pipeline"
)

// Record is a record as it came.
type Record struct {
	Key, Value []byte
	Headers    []pipeline.Header
	Time       arrowio.Time // 0 = none
}

// Options are bounds on a record. Zero values mean the defaults.
type Options struct {
	Slices      []string // names of the slice columns
	MaxBytes    int      // of a record's value, and of a message; default 64 MiB
	MaxRows     int      // of a record; default 2^20
	MaxClasses  int      // default 2^17
	MaxFeatures int      // default 2^16
	Schemas     Schemas  // of formats whose records name them; nil = there are none
}

// format is how values are read.
type format struct {
	new      func(c *Config, o *Options) (decoder, error)
	defaults defaults
	// registered: a record names its schema by number.
	registered bool
	// logger: records are events of requests and of responses, by their types.
	logger bool
}

// decoder adds the rows of a value to a collector.
type decoder interface {
	// decode calls begin of the collector, then end, for each document of the value; a list at the root is one document
	// for each item, unless each or items says otherwise. In between it follows the nodes from collector.root:
	//
	//	no node (nil)  the value is passed over
	//	columns        for each, for there may be several: once of the collector, then an add… method of the column
	//	each           a list whose items are rows: beginList, the node each of every item and endItem, then endList
	//	items          a list, of which items has the nodes of some places
	//	else           an object; kidOf finds the node of a field
	//
	// null where a node has no columns is as no value. Columns without a value need no call.
	decode(r *Record, c *collector) error
	// ready gets what the record needs from elsewhere, and returns an error where that cannot be had now.
	ready(ctx context.Context, r *Record) error
}

// complete is part of decoders whose records need nothing from elsewhere.
type complete struct{}

func (complete) ready(context.Context, *Record) error { return nil }

const formatArrow = "arrow"

// formats is the table of formats. A new format is a line here, a file with its decoder, a line in docs/schema.md with
// an example in examples/config, and mappings for a fuzz test in fuzzed. Reasons of its own for which records are
// refused are constants, Not… = "not_…", and lines in docs/schema.md.
var formats = map[string]format{
	formatArrow: {},
	"json": {
		new:      func(*Config, *Options) (decoder, error) { return &jsonDecoder{}, nil },
		defaults: defaults{own: true},
	},
	"avro":     {new: newAvro, defaults: defaults{own: true}, registered: true},
	"protobuf": {new: newProtobuf, defaults: defaults{own: true}, registered: true},
	"v2": {
		new: func(*Config, *Options) (decoder, error) { return &v2Decoder{}, nil },
		defaults: defaults{tensors: true, paths: map[string]string{"id": "id", "model": "model_name",
			"version": "model_version"}},
	},
	"cloudevents": {
		new:      func(*Config, *Options) (decoder, error) { return &eventDecoder{}, nil },
		defaults: defaults{own: true, paths: map[string]string{"ts": "event:time"}},
	},
	"kserve": {
		new:    func(c *Config, _ *Options) (decoder, error) { return &eventDecoder{only: logged(c)}, nil },
		logger: true,
		defaults: defaults{tensors: true, paths: map[string]string{"id": "event:id", "ts": "event:time",
			"model": "event:inferenceservicename"}},
	},
	"seldon": {
		new:    func(c *Config, _ *Options) (decoder, error) { return &eventDecoder{only: logged(c)}, nil },
		logger: true,
		defaults: defaults{tensors: true, paths: map[string]string{"id": "event:requestid", "ts": "event:time",
			"model": "event:inferenceservicename"}},
	},
}

func formatNames() []string { return slices.Sorted(maps.Keys(formats)) }

// Decoder makes messages of records. Not safe for concurrent use.
type Decoder struct {
	cfg  Config
	opt  Options
	rows *collector
	dec  decoder
	to   arrowio.RowsEncoder
	// value has the messages of the last record, one behind the other.
	value    []byte
	messages [][]byte
	// requests are those that the topic has beside the predictions; nil = none.
	requests *Decoder
}

// New compiles an input.
func New(c Config, o Options) (*Decoder, error) {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxBytes, 64<<20)
	def(&o.MaxRows, 1<<20)
	def(&o.MaxClasses, 1<<17)
	def(&o.MaxFeatures, 1<<16)
	f, known := formats[c.Format]
	if !known {
		return nil, fmt.Errorf("format %q: must be one of %v", c.Format, formatNames())
	}
	d := &Decoder{cfg: c, opt: o}
	if f.new == nil {
		return d, nil
	}
	if o.Slices == nil {
		o.Slices = []string{}
	}
	m, perr := compile(&c, o.Slices)
	if perr != nil {
		return nil, perr
	}
	d.rows = newCollector(m)
	var err error
	if d.dec, err = f.new(&c, &o); err == nil && c.Requested() && !c.apart() {
		d.requests, err = New(c.Requests(), o)
	}
	return d, err
}

// Ready gets what a record needs from elsewhere before Decode: its schema. An error says that it cannot be had now; the
// record has no fault, and should be tried again.
func (d *Decoder) Ready(ctx context.Context, r *Record) error {
	if d.dec == nil {
		return nil
	}
	return d.dec.ready(ctx, r)
}

// Decode turns a record into messages in Arrow, each of rows with one number of classes; none if it has no rows. They
// are valid until the next call. A record is decoded as a whole or not at all: an error is a *wire.FormatError that
// names the row, the field and its value.
func (d *Decoder) Decode(r *Record) (messages [][]byte, err error) {
	messages, err = d.decode(r)
	if err == nil && d.requests != nil {
		var more [][]byte
		more, err = d.requests.decode(r)
		messages = append(more, messages...)
	}
	if err != nil {
		return nil, err
	}
	return messages, nil
}

func (d *Decoder) decode(r *Record) (messages [][]byte, err error) {
	if d.dec == nil {
		return [][]byte{r.Value}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			messages, err = nil, wire.Errorf(wire.Panicked, "%v", p)
		}
		if err != nil {
			err = asFormatError(err)
		}
	}()
	if len(r.Value) > d.opt.MaxBytes {
		return nil, wire.Errorf(wire.TooLarge, "record of %d bytes, at most %d", len(r.Value), d.opt.MaxBytes)
	}
	d.rows.reset(&d.opt, r.Time)
	d.rows.outer(r)
	if err := d.dec.decode(r, d.rows); err != nil {
		return nil, err
	}
	rows, err := d.rows.rows(&d.cfg)
	if err != nil {
		return nil, err
	}
	return d.messagesOf(rows)
}

func (d *Decoder) messagesOf(rows []arrowio.Rows) ([][]byte, error) {
	d.value, d.messages = d.value[:0], d.messages[:0]
	if cap(d.value) > maxKept {
		d.value = nil
	}
	for i := range rows {
		if err := d.encode(&rows[i]); err != nil {
			return nil, err
		}
	}
	return d.messages, nil
}

// maxKept is how much memory for messages is kept from record to record.
const maxKept = 1 << 20

func asFormatError(err error) error {
	var fe *wire.FormatError
	if errors.As(err, &fe) {
		return err
	}
	return wire.Errorf(wire.Panicked, "%v", err)
}

// DecodeOf is Decode of rows of a model and a version, where they name none.
func (d *Decoder) DecodeOf(model, version string, r *Record) ([][]byte, error) {
	d.cfg.Model, d.cfg.Version = model, version
	return d.Decode(r)
}

// encode adds the messages of rows: as many as keep each within the limit.
func (d *Decoder) encode(r *arrowio.Rows) error {
	from := len(d.value)
	value, err := d.to.Append(d.value, r)
	if err != nil {
		return err
	}
	if n := len(value) - from; n > d.opt.MaxBytes {
		if r.N == 1 {
			return wire.Errorf(wire.TooLarge, "a row alone makes a message of %d bytes, at most %d", n, d.opt.MaxBytes)
		}
		first, second := r.Halves()
		if err := d.encode(first); err != nil {
			return err
		}
		return d.encode(second)
	}
	d.value, d.messages = value, append(d.messages, value[from:len(value):len(value)])
	return nil
}
