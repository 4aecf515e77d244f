package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonRow is an object: values by name, names by their order in the file.
type jsonRow map[string]json.RawMessage

// readJSON reads objects: one a line or one after another, an array of them, or one object of columns, as json.dump
// writes a dictionary of arrays. open gives the file from its start: it is read twice, because any row may be the first
// with a column.
func readJSON(open func() (io.Reader, error), o Options) (*Table, error) {
	var fields []field
	at := map[string]int{}
	columns, rows := jsonRow(nil), 0
	err := eachRow(open, func(row jsonRow) error {
		if rows++; rows == 1 {
			columns = row // of use where no other row follows and takes its place
		}
		var unseen []string
		for name, v := range row {
			if i, ok := at[name]; ok {
				fields[i].kind = mergeKinds(fields[i].kind, kindOfJSON(v))
			} else {
				unseen = append(unseen, name)
			}
		}
		slices.Sort(unseen)
		for _, name := range unseen {
			if len(fields) == mostFields {
				return fmt.Errorf("more than %d different names", mostFields)
			}
			at[name] = len(fields)
			fields = append(fields, field{name: name, kind: kindOfJSON(row[name]), cell: true})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if rows == 1 {
		if in, err := unwrapped(columns); err != nil {
			return nil, err
		} else if in != nil {
			return readJSON(func() (io.Reader, error) { return bytes.NewReader(in), nil }, o)
		}
		if t, done, err := readJSONColumns(columns, o); done {
			return t, err
		}
	}
	p, err := planOf(fields, o)
	if err != nil {
		return nil, err
	}
	f := &jsonFiller{csvFiller: csvFiller{filler: newFiller(p)}}
	for i := range fields {
		f.columns = append(f.columns, f.column(i))
	}
	if err := eachRow(open, f.row); err != nil {
		return nil, err
	}
	t, err := f.table()
	if err == nil {
		o.tell(p)
	}
	return t, err
}

// mostFields bounds the names of a file whose rows name them anew.
const mostFields = 1 << 16

// eachRow calls f with every object of a file. The row is valid until f returns.
func eachRow(open func() (io.Reader, error), f func(jsonRow) error) error {
	in, err := open()
	if err != nil {
		return err
	}
	d := json.NewDecoder(in)
	array, row, names := false, jsonRow{}, nameSet{}
	var raw json.RawMessage
	for n := 0; ; n++ {
		raw = raw[:0]
		if n == 0 {
			// An array is entered: its elements are the rows.
			if array, err = enter(d, &raw); err != nil {
				return fmt.Errorf("JSON: %w", noNumber(err))
			}
		}
		if array && !d.More() {
			return arrayEnds(d, n)
		}
		if len(raw) == 0 {
			err := d.Decode(&raw)
			if errors.Is(err, io.EOF) && !array {
				return nil
			}
			if err != nil {
				return fmt.Errorf("JSON, after row %d: %w", n, noNumber(err))
			}
		}
		clear(row)
		if err := names.flatten(row, "", raw); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		if err := f(row); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
}

// arrayEnds checks that an array of n rows ends where no row follows, and the file with it.
func arrayEnds(d *json.Decoder, n int) error {
	t, err := d.Token()
	if err == nil && t == json.Delim(']') {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			return fmt.Errorf("JSON, after row %d: more follows the array of rows: allowed is one array, or objects "+
				"one after the other", n)
		}
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the array of rows has no end: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("JSON, after row %d: %w", n, err)
}

// noNumber says what to do about numbers that Python writes and JSON does not have.
func noNumber(err error) error {
	if s := err.Error(); strings.Contains(s, "character 'N'") || strings.Contains(s, "character 'I'") {
		return fmt.Errorf("%w: JSON has neither NaN nor Infinity; write null for a label that is not known, and "+
			"leave out rows without scores", err)
	}
	return err
}

// enter reads the bracket of an array, or else the first value.
func enter(d *json.Decoder, first *json.RawMessage) (array bool, err error) {
	t, err := d.Token()
	if err != nil {
		return false, err
	}
	switch t {
	case json.Delim('['):
		return true, nil
	case json.Delim('{'):
	default:
		return false, fmt.Errorf("objects are needed, not %v", t)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return false, err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return false, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	*first = b.Bytes()
	_, err = d.Token()
	return false, err
}

// nameSet holds each name of a file once, by its bytes: every row has the same.
type nameSet map[string]string

func (s nameSet) name(b []byte) string {
	name, ok := s[string(b)]
	if !ok {
		name = string(b)
		if len(s) < mostFields {
			s[name] = name
		}
	}
	return name
}

// flatten puts the values of an object into row; those of an object within it are named outer.inner. raw is valid JSON.
func (s nameSet) flatten(row jsonRow, prefix string, raw json.RawMessage) error {
	if raw[0] != '{' {
		return fmt.Errorf("an object is needed, such as {\"probs\": [0.9, 0.1], \"label\": 0}")
	}
	for rest := raw[1:]; ; {
		var quoted, v json.RawMessage
		if quoted, rest = nextValue(rest); quoted == nil {
			return nil
		}
		v, rest = nextValue(rest)
		name, err := s.unquoted(quoted)
		if err != nil {
			return err
		}
		if prefix != "" {
			name = prefix + name
		}
		if v[0] == '{' && strings.Count(prefix, ".") < 4 {
			if err := s.flatten(row, name+".", v); err != nil {
				return err
			}
			continue
		}
		if scores := scoresByLabel(v); scores != nil {
			for label, x := range scores {
				row[name+"."+label] = x
			}
			continue
		}
		row[name] = v
	}
}

// unquoted is the text of a JSON string.
func (s nameSet) unquoted(quoted []byte) (name string, err error) {
	for _, c := range quoted {
		if c == '\\' || c >= utf8.RuneSelf {
			err = json.Unmarshal(quoted, &name)
			return name, err
		}
	}
	return s.name(quoted[1 : len(quoted)-1]), nil
}

// nextValue cuts the next value off valid JSON within an object: a name, or the value of one. It is nil at the end.
func nextValue(in json.RawMessage) (v, rest json.RawMessage) {
	for len(in) > 0 && (in[0] <= ' ' || in[0] == ',' || in[0] == ':') {
		in = in[1:]
	}
	depth := 0
	for i := 0; i < len(in); i++ {
		switch c := in[i]; c {
		case '"':
			for i++; in[i] != '"'; i++ {
				if in[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 { // of the object: a number, true, false or null ended here, or nothing is left
				if i == 0 {
					return nil, nil
				}
				return in[:i], in[i:]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return in[:i], in[i:]
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return in[:i+1], in[i+1:]
		}
	}
	return nil, nil
}

// scoresByLabel reads [{"label": "cat", "score": 0.9}, …], which pipelines of Hugging Face return; nil = it is none.
func scoresByLabel(v json.RawMessage) map[string]json.RawMessage {
	if len(v) < 2 || v[0] != '[' || !bytes.Contains(v, []byte(`"score"`)) {
		return nil
	}
	var list []struct {
		Label string          `json:"label"`
		Score json.RawMessage `json:"score"`
	}
	if json.Unmarshal(v, &list) != nil {
		return nil
	}
	out := map[string]json.RawMessage{}
	for _, s := range list {
		if s.Label != "" && s.Score != nil {
			out[s.Label] = s.Score
		}
	}
	if len(out) < 2 || len(out) != len(list) {
		return nil
	}
	return out
}

func kindOfJSON(v json.RawMessage) kind {
	switch v[0] {
	case 'n':
		return anyText
	case 't', 'f':
		return bools
	case '"':
		if k := kindOfText(anyText, string(bytes.Trim(v, `"`))); k == ints || k == floats {
			return k
		}
		return texts
	case '[':
		if !bytes.ContainsAny(v[1:], "[{\"") {
			return lists
		}
		if _, err := numbersIn(strings.ReplaceAll(string(v), "\n", " ")); err != nil {
			return other
		}
		return lists
	case '{':
		return other
	}
	if bytes.ContainsAny(v, ".eE") {
		return floats
	}
	return ints
}

func mergeKinds(k, now kind) kind {
	switch {
	case now == anyText, k == now:
		return k
	case k == anyText:
		return now
	case k == floats && now == ints, k == ints && now == floats:
		return floats
	case k != lists && k != other && now != lists && now != other:
		return texts
	}
	return other
}

// jsonFiller fills a table object by object, as a CSV file's row by row.
type jsonFiller struct {
	csvFiller
	columns []csvColumn
}

func (f *jsonFiller) row(row jsonRow) error {
	f.begin()
	for i, r := range f.p.roles {
		if r.part == ignored {
			continue
		}
		if err := f.value(i, r, row[f.p.fields[i].name]); err != nil {
			return fmt.Errorf("%s: %w", quoteName(f.p.fields[i].name), err)
		}
	}
	if err := f.hotRow(f.hot); err != nil {
		return err
	}
	f.t.N++
	return nil
}

// value takes a value of a row; nil where the row has none.
func (f *jsonFiller) value(i int, r role, v json.RawMessage) error {
	missing := len(v) == 0 || v[0] == 'n'
	switch r.part {
	case labelColumn:
		return f.labelValue(v, missing)
	case scoreList, featureList, labelList:
		return f.listValue(i, r, v, missing)
	}
	s := ""
	if !missing {
		s = string(v)
		if v[0] == '"' {
			if err := json.Unmarshal(v, &s); err != nil {
				return err
			}
		}
	}
	return f.columns[i](strings.TrimSpace(s))
}

func (f *jsonFiller) labelValue(v json.RawMessage, missing bool) error {
	if missing {
		f.y.none()
		return nil
	}
	s := string(v)
	if v[0] == '"' {
		if err := json.Unmarshal(v, &s); err != nil {
			return err
		}
	}
	return f.y.text(strings.TrimSpace(s))
}

func (f *jsonFiller) listValue(i int, r role, v json.RawMessage, missing bool) error {
	switch {
	case missing && r.part == labelList:
		f.y.none()
		return nil
	case missing && r.part == featureList:
		for range f.t.D {
			f.t.Features = append(f.t.Features, float32(math.NaN()))
		}
		return nil
	case missing:
		return fmt.Errorf("no value")
	}
	return f.columns[i](strings.ReplaceAll(strings.ReplaceAll(string(v), "\n", " "), "\r", " "))
}

// unwrapped are the rows within a single object: a list of objects by any name (dataframe_records), or columns and data
// (orient="split" of pandas, dataframe_split); nil = it holds none.
func unwrapped(object jsonRow) ([]byte, error) {
	for name, v := range object {
		prefix, isSplit := strings.CutSuffix(name, "columns")
		data := object[prefix+"data"]
		var columns []string
		var rows []json.RawMessage
		if isSplit && data != nil && json.Unmarshal(v, &columns) == nil && json.Unmarshal(data, &rows) == nil {
			return splitRows(columns, rows)
		}
		outer, inner, _ := strings.Cut(name, ".")
		if outer == "0" && object["1."+inner] != nil || inner == "0" && object[outer+".1"] != nil {
			return nil, fmt.Errorf("the rows are names of values (%s), as DataFrame.to_json() writes them: use "+
				"to_json(FILE, orient=\"records\", lines=True)", quoteName(name))
		}
		only := len(object) == 1 || name == "data" && object["schema.fields"] != nil // orient="table"
		if only && json.Unmarshal(v, &rows) == nil && len(rows) > 0 && rows[0][0] == '{' {
			return v, nil
		}
	}
	return nil, nil
}

// splitRows makes objects of rows whose columns are named once.
func splitRows(columns []string, rows []json.RawMessage) ([]byte, error) {
	var out bytes.Buffer
	for i, raw := range rows {
		var values []json.RawMessage
		if err := json.Unmarshal(raw, &values); err != nil || len(values) != len(columns) {
			return nil, fmt.Errorf("row %d of data is not a list of %d values: %s", i, len(columns),
				quoteNames(columns))
		}
		row := map[string]json.RawMessage{}
		for k, name := range columns {
			row[name] = values[k]
		}
		b, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		out.Write(append(b, '\n'))
	}
	return out.Bytes(), nil
}

// readJSONColumns reads an object whose values are columns of equal length; done is false where they are none.
func readJSONColumns(object jsonRow, o Options) (t *Table, done bool, err error) {
	columns := map[string][]json.RawMessage{}
	lengths := map[int]int{}
	matrix, n := "", -1
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var column []json.RawMessage
		if v := object[name]; v[0] != '[' || json.Unmarshal(v, &column) != nil {
			continue
		}
		columns[name] = column
		lengths[len(column)]++
		if inner := len(column) > 0 && column[0][0] == '['; inner && (matrix == "" || isScoreName(name)) {
			matrix, n = name, len(column) // a matrix says how many rows there are
		}
	}
	if n < 0 && len(columns) > 1 {
		for length, times := range lengths {
			if times > 1 {
				n = max(n, length)
			}
		}
	}
	if n < 2 { // one row of lists is a row
		return nil, false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if c := columns[name]; len(c) != n && !isClassNames(name) {
			return nil, true, fmt.Errorf("column %s has %d values, other columns have %d", quoteName(name), len(c), n)
		}
	}
	var rows bytes.Buffer
	for i := range n {
		row := map[string]json.RawMessage{}
		for name, c := range columns {
			if len(c) == n {
				row[name] = c[i]
			}
		}
		b, err := json.Marshal(row)
		if err != nil {
			return nil, true, err
		}
		rows.Write(append(b, '\n'))
	}
	t, err = readJSON(func() (io.Reader, error) { return bytes.NewReader(rows.Bytes()), nil }, o)
	return t, true, err
}
