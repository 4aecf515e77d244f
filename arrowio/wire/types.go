package wire

import "fmt"

// IsID reports whether a column can identify rows: text, binary or 64-bit integers.
func (f *Field) IsID() bool {
	switch f.Type {
	case Utf8, LargeUtf8, Binary, LargeBinary:
		return f.Dict == nil
	case Int:
		return f.Bits == 64 && f.Dict == nil
	}
	return false
}

// IsTimestamp reports whether a column holds timestamps.
func (f *Field) IsTimestamp() bool { return f.Type == Timestamp && f.Dict == nil }

// IsInt reports whether a column holds integers.
func (f *Field) IsInt() bool { return f.Type == Int && f.Dict == nil }

// IsFloat reports whether a column holds floating-point numbers.
func (f *Field) IsFloat() bool { return f.Type == Float && f.Dict == nil }

// IsText reports whether a column holds text, plain or by a dictionary.
func (f *Field) IsText() bool { return f.Type == Utf8 || f.Type == LargeUtf8 }

// IsFloatList reports whether a column holds lists of floating-point numbers.
func (f *Field) IsFloatList() bool {
	switch f.Type {
	case FixedSizeList, List, LargeList:
		return f.Dict == nil && f.Children[0].IsFloat()
	}
	return false
}

var typeNames = map[Type]string{
	Null:            "null",
	Binary:          "binary",
	Utf8:            "utf8",
	Bool:            "bool",
	Decimal:         "decimal",
	Date:            "date",
	TimeOfDay:       "time",
	Timestamp:       "timestamp",
	Interval:        "interval",
	Struct:          "struct",
	Union:           "union",
	FixedSizeBinary: "fixed_size_binary",
	Map:             "map",
	Duration:        "duration",
	LargeBinary:     "large_binary",
	LargeUtf8:       "large_utf8",
	RunEndEncoded:   "run_end_encoded",
	BinaryView:      "binary_view",
	Utf8View:        "utf8_view",
	List:            "list",
	FixedSizeList:   "fixed_size_list",
	LargeList:       "large_list",
	ListView:        "list_view",
	LargeListView:   "large_list_view",
}

// TypeName names a type as Arrow's documentation does, one level deep.
func (f *Field) TypeName() string {
	name := typeNames[f.Type]
	switch f.Type {
	case Int:
		name = fmt.Sprintf("int%d", f.Bits)
		if !f.Signed {
			name = "u" + name
		}
	case Float:
		name = fmt.Sprintf("float%d", f.Bits)
	case List, LargeList, FixedSizeList:
		name += "<" + f.Children[0].TypeName() + ">"
	}
	if f.Dict != nil {
		name = "dictionary of " + name
	}
	return name
}

// Finder looks up columns of a schema by name, and collects which are wanted. The first error stays.
type Finder struct {
	Schema *Schema
	Want   []bool
	Err    *FormatError
}

// NewFinder makes a finder that wants no column yet.
func NewFinder(s *Schema) *Finder { return &Finder{Schema: s, Want: make([]bool, len(s.Fields))} }

// FindOptional is Find of a column whose values may be missing. One of type null, which Arrow's libraries make of a
// column without any value, is as good as absent.
func (f *Finder) FindOptional(name, allowed string, ok func(*Field) bool) int {
	found := f.Find(name, allowed, func(c *Field) bool { return c.Type == Null || ok(c) })
	if found >= 0 && f.Schema.Fields[found].Type == Null {
		f.Want[found] = false
		return -1
	}
	return found
}

// Find is the index of the column name, whose type must pass ok, or -1. allowed names the types in the error.
func (f *Finder) Find(name, allowed string, ok func(*Field) bool) int {
	found := -1
	for i := range f.Schema.Fields {
		c := &f.Schema.Fields[i]
		if c.Name != name || f.Err != nil {
			continue
		}
		switch {
		case found >= 0:
			f.Err = Errorf(Duplicate, "column %.64q occurs twice", name)
		case !ok(c):
			f.Err = Errorf(ColumnType, "column %.64q is %s, allowed is %s", name, c.TypeName(), allowed)
		}
		found = i
		f.Want[i] = true
	}
	return found
}
