package inputs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// Schemas knows the schemas that records name by number. Those of a number never change.
type Schemas interface {
	// Schema returns that of a number, or an error: ErrNoSchema where there is none, ErrBadSchema where it is of no
	// use, else that it cannot be had now.
	Schema(ctx context.Context, id uint32) (Schema, error)
}

// ErrNoSchema says that there is no schema of a number, and a record that names it cannot be read.
var ErrNoSchema = errors.New("no such schema")

// ErrBadSchema says that a schema is there and cannot be used, now or later.
var ErrBadSchema = errors.New("cannot be used")

// Schema is a schema as it was registered.
type Schema struct {
	Type string // AVRO, PROTOBUF or JSON
	Text string
	// Refers are the schemas that it refers to, by the names that it uses, those without references of their own first.
	Refers []NamedSchema
}

// NamedSchema is one that another refers to.
type NamedSchema struct{ Name, Text string }

// Reasons why a record with a registered schema is refused.
const (
	// NotFramed is that of a record that does not begin with a 0 and the number of a schema.
	NotFramed = "not_framed"
	// BadSchema is that of a record whose schema is not there, or cannot be used.
	BadSchema = "schema"
)

// frame is what comes before a value: a 0, and the number of its schema in 4 bytes.
const frame = 5

// maxCompiled is how many schemas are kept compiled: numbers are the sender's.
const maxCompiled = 1000

// registered reads values that name their schema by Confluent's framing.
type registered[S any] struct {
	name    string // as the registry calls the format
	schemas Schemas
	compile func(s *Schema) (S, error)
	read    func(schema S, value []byte, c *collector) error
	known   map[uint32]compiled[S]
	before  map[uint32]compiled[S] // those that known had: records before this one may be read once more
}

type compiled[S any] struct {
	schema  S
	err     error
	missing bool // from the registry, when it was asked last
}

func newRegistered[S any](name string, o *Options, compile func(*Schema) (S, error),
	read func(S, []byte, *collector) error) (decoder, error) {
	if o.Schemas == nil {
		return nil, errors.New("records name their schemas by number: schema_registry.url must say where they are")
	}
	return &registered[S]{name: name, schemas: o.Schemas, compile: compile, read: read}, nil
}

func framed(value []byte) (id uint32, rest []byte, ok bool) {
	if len(value) < frame || value[0] != 0 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(value[1:]), value[frame:], true
}

// ready gets the schema of a record.
func (d *registered[S]) ready(ctx context.Context, r *Record) error {
	id, _, ok := framed(r.Value)
	if !ok {
		return nil // decode says so
	}
	if c, known := d.of(id); known && !c.missing {
		if _, newest := d.known[id]; !newest {
			d.keep(id, c)
		}
		return nil
	}
	s, err := d.schemas.Schema(ctx, id)
	var c compiled[S]
	switch {
	case errors.Is(err, ErrBadSchema):
		c.err = wire.Errorf(BadSchema, "schema %d %v", id, err)
	case err != nil && !errors.Is(err, ErrNoSchema):
		return err
	case err != nil:
		c.missing = true // the registry may get it: the client bounds how often it is asked
		c.err = wire.Errorf(BadSchema, "schema %d: the registry has none of this number", id)
	case s.Type != d.name:
		c.err = wire.Errorf(BadSchema, "schema %d is of type %.20s, the input's format takes %s", id, s.Type, d.name)
	default:
		if c.schema, err = d.compile(&s); err != nil {
			c.err = wire.Errorf(BadSchema, "schema %d: %v", id, err)
		}
	}
	d.keep(id, c)
	return nil
}

func (d *registered[S]) keep(id uint32, c compiled[S]) {
	if d.known == nil || len(d.known) >= maxCompiled {
		d.known, d.before = map[uint32]compiled[S]{}, d.known
	}
	d.known[id] = c
}

// of is what is known of a schema.
func (d *registered[S]) of(id uint32) (c compiled[S], known bool) {
	if c, known = d.known[id]; !known {
		c, known = d.before[id]
	}
	return c, known
}

func (d *registered[S]) decode(r *Record, c *collector) error {
	if len(r.Value) == 0 {
		return nil // a tombstone, as of a row that was deleted in a database
	}
	id, value, ok := framed(r.Value)
	if !ok {
		return wire.Errorf(NotFramed, "begins with %.8q: must be a 0 byte and the number of the schema in 4 bytes",
			r.Value[:min(len(r.Value), 8)])
	}
	known, ready := d.of(id)
	if !ready {
		return wire.Errorf(BadSchema, "schema %d is not known yet", id)
	}
	if known.err != nil {
		return known.err
	}
	return d.read(known.schema, value, c)
}

// unframed is the JSON behind the frame of a registered schema, if there is one: no JSON begins with a 0.
func unframed(value []byte) []byte {
	if _, rest, ok := framed(value); ok {
		return bytes.TrimLeft(rest, " ")
	}
	return value
}

// work bounds the values of a record that take no bytes, such as nulls in a list, and how deep they are nested.
type work struct {
	left  int
	depth int
}

// workOf is the work that a value of so many bytes may ask for.
func workOf(bytes int) work { return work{left: 1<<16 + 8*bytes} }

func (w *work) down() error {
	w.depth++
	w.left--
	if w.depth > maxDepth {
		return wire.Errorf(wire.TooLarge, "nested deeper than %d", maxDepth)
	}
	if w.left < 0 {
		return wire.Errorf(wire.TooLarge, "more values than the bytes of the record can hold")
	}
	return nil
}

func (w *work) up() { w.depth-- }
