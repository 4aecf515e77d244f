package arrowio

import (
	"fmt"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio/wire"
)

func isID(f *wire.Field) bool {
	switch f.Type {
	case wire.Utf8, wire.LargeUtf8, wire.Binary, wire.LargeBinary:
		return f.Dict == nil
	case wire.Int:
		return f.Bits == 64 && f.Dict == nil
	}
	return false
}

func isTimestamp(f *wire.Field) bool { return f.Type == wire.Timestamp && f.Dict == nil }
func isInt(f *wire.Field) bool       { return f.Type == wire.Int && f.Dict == nil }
func isFloat(f *wire.Field) bool     { return f.Type == wire.Float && f.Dict == nil }
func isText(f *wire.Field) bool      { return f.Type == wire.Utf8 || f.Type == wire.LargeUtf8 }

func isFloatList(f *wire.Field) bool {
	switch f.Type {
	case wire.FixedSizeList, wire.List, wire.LargeList:
		return f.Dict == nil && isFloat(&f.Children[0])
	}
	return false
}

func validText(s string) bool { return utf8.ValidString(s) }

var typeNames = map[wire.Type]string{
	wire.Null: "null", wire.Binary: "binary", wire.Utf8: "utf8", wire.Bool: "bool", wire.Decimal: "decimal",
	wire.Date: "date", wire.TimeOfDay: "time", wire.Timestamp: "timestamp", wire.Interval: "interval",
	wire.Struct: "struct", wire.Union: "union", wire.FixedSizeBinary: "fixed_size_binary", wire.Map: "map",
	wire.Duration: "duration", wire.LargeBinary: "large_binary", wire.LargeUtf8: "large_utf8",
	wire.RunEndEncoded: "run_end_encoded", wire.BinaryView: "binary_view", wire.Utf8View: "utf8_view",
	wire.List: "list", wire.FixedSizeList: "fixed_size_list", wire.LargeList: "large_list",
	wire.ListView: "list_view", wire.LargeListView: "large_list_view",
}

// typeName names a type as Arrow's documentation does, one level deep.
func typeName(f *wire.Field) string {
	name := typeNames[f.Type]
	switch f.Type {
	case wire.Int:
		name = fmt.Sprintf("int%d", f.Bits)
		if !f.Signed {
			name = "u" + name
		}
	case wire.Float:
		name = fmt.Sprintf("float%d", f.Bits)
	case wire.List, wire.LargeList, wire.FixedSizeList:
		name += "<" + typeName(&f.Children[0]) + ">"
	}
	if f.Dict != nil {
		name = "dictionary of " + name
	}
	return name
}
