package inputs

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/emicklei/proto"
	"google.golang.org/protobuf/encoding/protowire"
)

// protoMessage is a message type.
type protoMessage struct {
	name   string // in full
	nested []*protoMessage
	fields []*protoField
	by     map[protowire.Number]*protoField
	entry  bool // of a map
}

// protoField is a field of a message.
type protoField struct {
	name     string
	number   protowire.Number
	kind     string // a scalar type, "enum", "message" or "group"
	of       string // the type's name, of enums and messages
	message  *protoMessage
	enum     map[int32]string
	repeated bool
	isMap    bool
	presence bool // the field may be absent; else it has its zero value then
}

// protoFiles are the types of a schema and of those that it imports.
type protoFiles struct {
	messages map[string]*protoMessage
	enums    map[string]map[int32]string
	top      []*protoMessage // of the file read last
	refs     []protoRef
}

// protoRef is a field whose type is to be found, from a scope outwards.
type protoRef struct {
	field *protoField
	scope string
}

var protoScalars = map[string]bool{"double": true, "float": true, "int32": true, "int64": true, "uint32": true,
	"uint64": true, "sint32": true, "sint64": true, "fixed32": true, "fixed64": true, "sfixed32": true,
	"sfixed64": true, "bool": true, "string": true, "bytes": true}

// wellKnown is of a package whose types need no import here.
const wellKnown = "google.protobuf."

// parseProtobuf reads a schema and those that it imports.
func parseProtobuf(s *Schema) (*protoFiles, error) {
	p := &protoFiles{messages: map[string]*protoMessage{}, enums: map[string]map[int32]string{}}
	for _, other := range s.Refers {
		if err := p.file(other.Text); err != nil {
			return nil, fmt.Errorf("%s: %w", other.Name, err)
		}
	}
	if err := p.file(s.Text); err != nil {
		return nil, err
	}
	for _, r := range p.refs {
		if err := p.resolve(r); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// file reads a .proto file, or what protoc makes of it in base64, as some clients register it.
func (p *protoFiles) file(text string) error {
	p.top = nil
	if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && len(b) > 0 {
		return p.descriptor(b)
	}
	if depth := deepest(text); depth > maxDepth {
		return fmt.Errorf("braces in %d levels, at most %d", depth, maxDepth)
	}
	file, err := proto.NewParser(strings.NewReader(text)).Parse()
	if err != nil {
		return err
	}
	space, presence := "", true
	for _, e := range file.Elements {
		switch e := e.(type) {
		case *proto.Package:
			space = e.Name
		case *proto.Syntax:
			presence = e.Value != "proto3"
		}
	}
	for _, e := range file.Elements {
		switch e := e.(type) {
		case *proto.Message:
			if !e.IsExtend {
				p.top = append(p.top, p.message(e, space, presence))
			}
		case *proto.Enum:
			p.enum(e, space)
		}
	}
	return nil
}

// deepest is how deep braces are nested; the parser calls itself for each.
func deepest(text string) (most int) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
			most = max(most, depth)
		case '}':
			depth--
		}
	}
	return most
}

func (p *protoFiles) declare(name, space string) *protoMessage {
	m := &protoMessage{name: inSpace(name, space), by: map[protowire.Number]*protoField{}}
	p.messages[m.name] = m
	return m
}

func (m *protoMessage) add(f *protoField) {
	m.fields = append(m.fields, f)
	m.by[f.number] = f
}

func (p *protoFiles) message(e *proto.Message, space string, presence bool) *protoMessage {
	m := p.declare(e.Name, space)
	p.elements(m, e.Elements, presence)
	return m
}

func (p *protoFiles) elements(m *protoMessage, elements []proto.Visitee, presence bool) {
	add := func(f *proto.Field, presence bool) *protoField {
		field := &protoField{name: f.Name, number: protowire.Number(f.Sequence), of: f.Type, presence: presence}
		p.typed(field, m.name)
		m.add(field)
		return field
	}
	for _, e := range elements {
		switch e := e.(type) {
		case *proto.NormalField:
			add(e.Field, presence || e.Optional).repeated = e.Repeated
		case *proto.MapField:
			entry := &protoMessage{entry: true, by: map[protowire.Number]*protoField{}}
			for i, t := range []string{e.KeyType, e.Type} {
				f := &protoField{name: []string{"key", "value"}[i], number: protowire.Number(i + 1), of: t}
				p.typed(f, m.name)
				entry.add(f)
			}
			m.add(&protoField{name: e.Name, number: protowire.Number(e.Sequence), kind: "message", message: entry,
				repeated: true, isMap: true})
		case *proto.Oneof:
			for _, o := range e.Elements {
				if f, ok := o.(*proto.OneOfField); ok {
					add(f.Field, true)
				}
			}
		case *proto.Group:
			m.add(&protoField{name: strings.ToLower(e.Name), number: protowire.Number(e.Sequence), kind: "group"})
		case *proto.Message:
			if !e.IsExtend {
				m.nested = append(m.nested, p.message(e, m.name, presence))
			}
		case *proto.Enum:
			p.enum(e, m.name)
		}
	}
}

// typed sets the kind of a field whose type has a name.
func (p *protoFiles) typed(f *protoField, scope string) {
	if protoScalars[f.of] {
		f.kind = f.of
		return
	}
	p.refs = append(p.refs, protoRef{f, scope})
}

func (p *protoFiles) enum(e *proto.Enum, space string) {
	values := map[int32]string{}
	for _, v := range e.Elements {
		if f, ok := v.(*proto.EnumField); ok {
			values[int32(f.Integer)] = f.Name
		}
	}
	p.enums[inSpace(e.Name, space)] = values
}

// resolve finds the type of a field, in the innermost scope that has it.
func (p *protoFiles) resolve(r protoRef) error {
	f, scope := r.field, r.scope
	name, absolute := strings.CutPrefix(f.of, ".")
	if absolute {
		scope = ""
	}
	for {
		full := inScope(name, scope)
		if m := p.messages[full]; m != nil {
			f.kind, f.message, f.presence, f.isMap = "message", m, true, m.entry
			return nil
		}
		if e := p.enums[full]; e != nil {
			f.kind, f.enum = "enum", e
			return nil
		}
		if scope == "" {
			break
		}
		i := strings.LastIndexByte(scope, '.')
		scope = scope[:max(i, 0)]
	}
	if strings.HasPrefix(name, wellKnown) {
		f.kind, f.presence = "message", true
		f.message = wellKnownMessage(name)
		return nil
	}
	return fmt.Errorf("field %.80q: there is no type %.80q", f.name, f.of)
}

func inScope(name, scope string) string {
	if scope == "" {
		return name
	}
	return scope + "." + name
}

// wellKnownMessage is one that needs no import: a timestamp, a value that may be absent, or one without known fields.
func wellKnownMessage(name string) *protoMessage {
	m := &protoMessage{name: name, by: map[protowire.Number]*protoField{}}
	kind, isValue := strings.CutSuffix(strings.TrimPrefix(name, wellKnown), "Value")
	switch kind = strings.ToLower(kind); {
	case name == wellKnown+"Timestamp":
		m.add(&protoField{name: "seconds", number: 1, kind: "int64"})
		m.add(&protoField{name: "nanos", number: 2, kind: "int32"})
	case isValue && protoScalars[kind]:
		m.add(&protoField{name: "value", number: 1, kind: kind})
	}
	return m
}

// indexed finds the message that a record names by the indexes of messages inside of each other.
func (p *protoFiles) indexed(indexes []int64) *protoMessage {
	var m *protoMessage
	level := p.top
	for _, i := range indexes {
		if i < 0 || i >= int64(len(level)) {
			return nil
		}
		m = level[i]
		level = m.nested
	}
	return m
}
