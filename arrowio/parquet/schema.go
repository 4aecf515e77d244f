package parquet

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// column is a column of the file's top level: values, or lists of values.
type column struct {
	name string
	leaf *schema.Column
	at   int // of the leaf, among those of the file
	typ  arrow.DataType
	kind parquet.Type
	// Levels of definition: a row below nulls is null, a list below empties is empty, an element below full is null.
	list                 bool
	nulls, empties, full int16
	repeated             int16
	other                string // why the column cannot be read; "" where it can
}

// columnsOf are the columns of a schema by the order of the file. The Arrow schema that some writers leave in the
// metadata is not looked at: the types of Parquet say all that is needed, and it makes fixed-size lists of lists.
func columnsOf(s *schema.Schema) []*column {
	var out []*column
	leaf := 0
	for i := range s.Root().NumFields() {
		node := s.Root().Field(i)
		c := &column{name: node.Name(), at: leaf}
		if leaf < s.NumColumns() {
			c.leaf = s.Column(leaf)
			c.set(node)
		} else {
			c.other = "no columns"
		}
		columns := []*column{c}
		if g, ok := node.(*schema.GroupNode); ok && c.other == structType {
			fields := fieldsOf(s, g, leaf)
			if slices.ContainsFunc(fields, func(c *column) bool { return c.other == "" }) { // a map has none
				columns = fields
			}
		}
		out = append(out, columns...)
		leaf += leaves(node)
	}
	return out
}

const structType = "type struct"

// fieldsOf are the fields of a struct, which begin at a leaf, as columns: probs.cat, probs.dog.
func fieldsOf(s *schema.Schema, g *schema.GroupNode, leaf int) (out []*column) {
	for i := range g.NumFields() {
		node := g.Field(i)
		c := &column{name: g.Name() + "." + node.Name(), at: leaf, leaf: s.Column(leaf)}
		_, single := node.(*schema.PrimitiveNode)
		if repeated := c.leaf.MaxRepetitionLevel() > 0; single && !repeated {
			c.set(node)
		} else {
			c.other = "type list, struct or map in a struct"
		}
		leaf += leaves(node)
		out = append(out, c)
	}
	return out
}

func leaves(n schema.Node) int {
	g, ok := n.(*schema.GroupNode)
	if !ok {
		return 1
	}
	sum := 0
	for i := range g.NumFields() {
		sum += leaves(g.Field(i))
	}
	return sum
}

func (c *column) set(node schema.Node) {
	element := node
	switch g := node.(type) {
	case *schema.GroupNode:
		if element = elementOf(g); element == nil {
			c.other = structType
			return
		}
		c.list = true
	default:
		c.list = node.RepetitionType() == parquet.Repetitions.Repeated
	}
	p, ok := element.(*schema.PrimitiveNode)
	if !ok {
		c.other = "type list of lists or structs"
		return
	}
	c.full, c.repeated, c.kind = c.leaf.MaxDefinitionLevel(), c.leaf.MaxRepetitionLevel(), p.PhysicalType()
	if node.RepetitionType() == parquet.Repetitions.Optional {
		c.nulls = 1
	}
	if c.empties = c.nulls; c.list {
		c.empties++
	}
	var err error
	if c.typ, err = typeOf(p); err != nil {
		c.other = err.Error()
	}
	if c.kind == parquet.Types.FixedLenByteArray && c.width() < 1 {
		c.other = fmt.Sprintf("type %s of %d bytes", c.kind, c.width())
	}
}

// elementOf is the element of a list, which is written in three levels or, by old writers, in two; nil where a group is
// no list.
func elementOf(g *schema.GroupNode) schema.Node {
	_, logical := g.LogicalType().(schema.ListLogicalType)
	if !logical && g.ConvertedType() != schema.ConvertedTypes.List || g.NumFields() != 1 {
		return nil
	}
	repeated := g.Field(0)
	if g.RepetitionType() == parquet.Repetitions.Repeated || repeated.RepetitionType() != parquet.Repetitions.Repeated {
		return nil
	}
	inner, ok := repeated.(*schema.GroupNode)
	if !ok {
		return repeated
	}
	if inner.NumFields() != 1 || inner.Name() == "array" || inner.Name() == g.Name()+"_tuple" {
		return inner // a struct, by the format's rules
	}
	if e := inner.Field(0); e.RepetitionType() != parquet.Repetitions.Repeated {
		return e
	}
	return inner
}

// typeOf is the Arrow type of a primitive node.
func typeOf(p *schema.PrimitiveNode) (arrow.DataType, error) {
	l := p.LogicalType()
	if _, null := l.(schema.NullLogicalType); null {
		return arrow.Null, nil
	}
	if d, ok := l.(*schema.DecimalLogicalType); ok {
		if d.Precision() > 38 {
			return nil, fmt.Errorf("type %s", l)
		}
		return &arrow.Decimal128Type{Precision: d.Precision(), Scale: d.Scale()}, nil
	}
	switch p.PhysicalType() {
	case parquet.Types.Boolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case parquet.Types.Float:
		return arrow.PrimitiveTypes.Float32, nil
	case parquet.Types.Double:
		return arrow.PrimitiveTypes.Float64, nil
	case parquet.Types.Int96:
		return arrow.FixedWidthTypes.Timestamp_ns, nil
	case parquet.Types.Int32:
		return int32Type(l)
	case parquet.Types.Int64:
		return int64Type(l)
	case parquet.Types.ByteArray:
		if _, text := l.(schema.StringLogicalType); text {
			return arrow.BinaryTypes.String, nil
		}
		return arrow.BinaryTypes.Binary, nil
	case parquet.Types.FixedLenByteArray:
		if _, half := l.(schema.Float16LogicalType); half {
			return arrow.FixedWidthTypes.Float16, nil
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: p.TypeLength()}, nil
	}
	return nil, fmt.Errorf("type %s", p.PhysicalType())
}

// int32Type is the type of numbers of 32 bits, which narrower ones are stored as.
func int32Type(l schema.LogicalType) (arrow.DataType, error) {
	switch l := l.(type) {
	case *schema.IntLogicalType:
		if l.BitWidth() == 32 && !l.IsSigned() {
			return arrow.PrimitiveTypes.Uint32, nil
		}
		return arrow.PrimitiveTypes.Int32, nil
	case schema.DateLogicalType:
		return arrow.FixedWidthTypes.Date32, nil
	case *schema.TimeLogicalType:
		return arrow.FixedWidthTypes.Time32ms, nil
	}
	return arrow.PrimitiveTypes.Int32, nil
}

func int64Type(l schema.LogicalType) (arrow.DataType, error) {
	switch l := l.(type) {
	case *schema.IntLogicalType:
		if !l.IsSigned() {
			return arrow.PrimitiveTypes.Uint64, nil
		}
	case *schema.TimeLogicalType:
		if l.TimeUnit() == schema.TimeUnitNanos {
			return arrow.FixedWidthTypes.Time64ns, nil
		}
		return arrow.FixedWidthTypes.Time64us, nil
	case *schema.TimestampLogicalType:
		t := &arrow.TimestampType{}
		if l.IsAdjustedToUTC() || l.IsFromConvertedType() {
			t.TimeZone = "UTC"
		}
		switch l.TimeUnit() {
		case schema.TimeUnitMillis:
			t.Unit = arrow.Millisecond
		case schema.TimeUnitMicros:
			t.Unit = arrow.Microsecond
		case schema.TimeUnitNanos:
			t.Unit = arrow.Nanosecond
		default:
			return nil, fmt.Errorf("timestamps of an unknown unit")
		}
		return t, nil
	}
	return arrow.PrimitiveTypes.Int64, nil
}

// width is the bytes of a value in the file; 0 where they differ.
func (c *column) width() int {
	switch c.kind {
	case parquet.Types.Boolean:
		return 1
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	case parquet.Types.Int96:
		return 12
	case parquet.Types.FixedLenByteArray:
		return c.leaf.TypeLength()
	}
	return 0
}
