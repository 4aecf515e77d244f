package inputs

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/pipeline"
)

// eventDecoder reads CloudEvents: attributes in headers of Kafka beside the data (binary), or an object, or a list of
// objects, that has both (structured, batched). Their data is JSON.
type eventDecoder struct {
	complete
	only func(eventType string) bool // which events are read; nil = all
	data jsonDecoder
	s    scanner
}

// NotEvent is why a record is refused that is no CloudEvent.
const NotEvent = "not_event"

func (d *eventDecoder) decode(r *Record, c *collector) error {
	kind, ok := attribute(r, "type")
	if ok {
		if d.only != nil && !d.only(string(kind)) {
			return nil
		}
		return d.data.decode(r, c)
	}
	d.s = scanner{b: r.Value, buf: d.s.buf}
	if d.s.peek() == '[' {
		return d.s.array(func(int) error { return d.structured(r, c) })
	}
	if err := d.structured(r, c); err != nil {
		return err
	}
	if d.s.peek(); d.s.i < len(r.Value) {
		return d.s.fail("the end of the event")
	}
	return nil
}

// attribute is one of a CloudEvent in headers.
func attribute(r *Record, name string) ([]byte, bool) {
	return r.outside(&path{from: "event", name: name})
}

// structured reads an event with its data.
func (d *eventDecoder) structured(r *Record, c *collector) error {
	if d.s.peek() != '{' {
		return wire.Errorf(NotEvent, "byte %d: neither the header ce_type nor an object: no CloudEvent", d.s.i)
	}
	event := Record{Key: r.Key, Time: r.Time, Headers: r.Headers[:len(r.Headers):len(r.Headers)]}
	kind := ""
	err := d.s.object(func(name []byte) error {
		key := string(name)
		d.s.peek()
		from := d.s.i
		if key == "data" {
			err := d.s.skip()
			event.Value = d.s.b[from:d.s.i]
			return err
		}
		if d.s.peek() != '"' {
			return d.s.skip()
		}
		text, err := d.s.text()
		if err != nil {
			return err
		}
		switch key {
		case "data_base64":
			if event.Value, err = base64.StdEncoding.AppendDecode(nil, text); err != nil {
				return wire.Errorf(NotEvent, "byte %d: data_base64: %v", from, err)
			}
			return nil
		case "type":
			kind = string(text)
		}
		event.Headers = append(event.Headers, pipeline.Header{Key: "ce_" + key, Value: bytes.Clone(text)})
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind == "":
		return wire.Errorf(NotEvent, "neither the header ce_type nor the field type: no CloudEvent")
	case d.only != nil && !d.only(kind):
		return nil
	}
	c.outer(&event)
	return d.data.decode(&event, c)
}

// logged reads the events that a payload logger sends of responses, of requests, or of feedback for labels, and passes
// over others.
func logged(c *Config) func(eventType string) bool {
	suffix := ".response"
	switch {
	case c.Kind() == arrowio.Labels:
		suffix = ".feedback"
	case c.side() == arrowio.Request:
		suffix = ".request"
	}
	return func(eventType string) bool { return strings.HasSuffix(eventType, suffix) }
}
