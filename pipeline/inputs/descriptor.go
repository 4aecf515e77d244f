package inputs

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// protoTypes are the scalar types by their number in FieldDescriptorProto.Type.
var protoTypes = [...]string{1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
	8: "bool", 9: "string", 10: "group", 11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "sfixed32",
	16: "sfixed64", 17: "sint32", 18: "sint64"}

// descriptor reads FileDescriptorProto: package = 2, message_type = 4, enum_type = 5, syntax = 12.
func (p *protoFiles) descriptor(b []byte) error {
	space, presence := "", true
	err := fields(b, func(number protowire.Number, v []byte, _ uint64) error {
		switch number {
		case 2:
			space = string(v)
		case 12:
			presence = string(v) != "proto3"
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fields(b, func(number protowire.Number, v []byte, _ uint64) error {
		switch number {
		case 4:
			m, err := p.describedMessage(v, space, presence, 0)
			p.top = append(p.top, m)
			return err
		case 5:
			return p.describedEnum(v, space)
		}
		return nil
	})
}

// describedMessage reads DescriptorProto: name = 1, field = 2, nested_type = 3, enum_type = 4, options = 7, of which
// map_entry = 7.
func (p *protoFiles) describedMessage(b []byte, space string, presence bool, depth int) (*protoMessage, error) {
	w := work{left: 1, depth: depth}
	if err := w.down(); err != nil {
		return nil, err
	}
	name := ""
	if err := fields(b, func(number protowire.Number, v []byte, _ uint64) error {
		if number == 1 {
			name = string(v)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	m := p.declare(name, space)
	return m, fields(b, func(number protowire.Number, v []byte, _ uint64) error {
		switch number {
		case 2:
			f, err := p.describedField(v, m.name, presence)
			m.add(f)
			return err
		case 3:
			nested, err := p.describedMessage(v, m.name, presence, depth+1)
			m.nested = append(m.nested, nested)
			return err
		case 4:
			return p.describedEnum(v, m.name)
		case 7:
			return fields(v, func(number protowire.Number, _ []byte, n uint64) error {
				m.entry = m.entry || number == 7 && n == 1
				return nil
			})
		}
		return nil
	})
}

// describedField reads FieldDescriptorProto: name = 1, number = 3, label = 4 (3 is repeated), type = 5, type_name = 6,
// oneof_index = 9.
func (p *protoFiles) describedField(b []byte, scope string, presence bool) (*protoField, error) {
	f := &protoField{presence: presence}
	err := fields(b, func(number protowire.Number, v []byte, n uint64) error {
		switch number {
		case 1:
			f.name = string(v)
		case 3:
			f.number = protowire.Number(n)
		case 4:
			f.repeated = n == 3
		case 5:
			if n < uint64(len(protoTypes)) {
				f.kind = protoTypes[n]
			}
		case 6:
			f.of = string(v)
		case 9:
			f.presence = true
		}
		return nil
	})
	if f.of != "" && f.kind != "group" {
		p.refs = append(p.refs, protoRef{f, scope})
	}
	return f, err
}

// describedEnum reads EnumDescriptorProto: name = 1, value = 2, of which name = 1, number = 2.
func (p *protoFiles) describedEnum(b []byte, space string) error {
	enum, values := "", map[int32]string{}
	err := fields(b, func(number protowire.Number, v []byte, _ uint64) error {
		switch number {
		case 1:
			enum = string(v)
		case 2:
			name, value := "", int32(0)
			defer func() { values[value] = name }()
			return fields(v, func(number protowire.Number, v []byte, n uint64) error {
				switch number {
				case 1:
					name = string(v)
				case 2:
					value = int32(n)
				}
				return nil
			})
		}
		return nil
	})
	p.enums[inSpace(enum, space)] = values
	return err
}
