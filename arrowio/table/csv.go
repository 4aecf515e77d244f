package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio"
)

// csvColumn appends one field to the table.
type csvColumn func(s string) error

// csvReader reads rows. The first ones are kept until it is known what the columns are.
type csvReader struct {
	in      *csv.Reader
	header  []string
	first   [][]string
	lines   []int  // of first
	skipped int    // lines before the header
	comma   bool   // numbers have a decimal comma
	points  []bool // of each column: numbers have a decimal point
}

// csvFirst is how many rows say what a column holds.
const csvFirst = 100

// newCSVReader reads the header.
func newCSVReader(r io.Reader) (*csvReader, error) {
	b := bufio.NewReaderSize(r, 1<<20)
	comma, skipped, err := preamble(b)
	if err != nil {
		return nil, err
	}
	if comma == 0 {
		comma = separator(b)
	}
	in := csv.NewReader(b)
	in.Comma, in.ReuseRecord = comma, true
	in.TrimLeadingSpace = comma != '\t' // "a", "b"
	row, err := in.Read()
	for err == nil && isBlank(row) {
		in.FieldsPerRecord = 0
		row, err = in.Read()
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file has no text: its first line must name the columns")
	}
	if err != nil {
		return nil, err
	}
	header := slices.Clone(row)
	fractions, whole := 0, 0
	for i, name := range header {
		header[i] = strings.Clone(strings.TrimSpace(name))
		switch kindOfText(anyText, header[i]) {
		case floats:
			fractions++
		case ints:
			whole++
		}
	}
	if fractions > 0 && 2*(fractions+whole) >= len(header) {
		return nil, fmt.Errorf("the first line has numbers where the names of columns must be: put a header before "+
			"it, such as %s", exampleHeader(len(header)))
	}
	return &csvReader{in: in, header: header, skipped: skipped}, nil
}

func exampleHeader(columns int) string {
	if columns <= 2 {
		return "prob,label"
	}
	return "probs_0,probs_1,…,label"
}

// preamble skips what spreadsheets write before the header: a byte order mark, and the line sep=; that says the
// separator.
func preamble(b *bufio.Reader) (comma rune, lines int, err error) {
	head, _ := b.Peek(1 << 12)
	text := bytes.TrimPrefix(head, []byte("\ufeff"))
	skip := len(head) - len(text)
	line, _, more := bytes.Cut(text, []byte("\n"))
	if at := bytes.IndexByte(line, '\r'); at >= 0 && at < len(line)-1 && !bytes.ContainsRune(line[:at], '"') {
		return 0, 0, fmt.Errorf("the lines end with a carriage return alone: save the file with line feeds")
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if sep, ok := bytes.CutPrefix(bytes.ToLower(line), []byte("sep=")); ok && more && len(sep) == 1 &&
		bytes.ContainsAny(sep, ",;|\t") {
		comma, lines = rune(sep[0]), 1
		skip += bytes.IndexByte(text, '\n') + 1
	}
	_, err = b.Discard(skip)
	return comma, lines, err
}

// isBlank reports whether a line has spaces alone.
func isBlank(row []string) bool { return len(row) == 1 && strings.TrimSpace(row[0]) == "" }

// read is the next row.
func (c *csvReader) read() ([]string, error) {
	row, err := c.in.Read()
	for errors.Is(err, csv.ErrFieldCount) && isBlank(row) {
		row, err = c.in.Read()
	}
	if errors.Is(err, csv.ErrFieldCount) {
		line, _ := c.in.FieldPos(0)
		return nil, fmt.Errorf("line %d has %d fields, and the header has %d: %s", line+c.skipped, len(row),
			len(c.header), quoteNames(c.header))
	}
	return row, err
}

// decimal is a number with a decimal comma, written with a point.
func decimal(s string) (string, bool) {
	if strings.Count(s, ",") != 1 {
		return s, false
	}
	point := strings.Replace(s, ",", ".", 1)
	_, err := parseFloat(point)
	return point, err == nil
}

// thousands reports whether a number may be a whole one of thousands, as 1.200 and 1,200 are.
func thousands(s string) bool {
	at := strings.IndexAny(s, ".,")
	return at >= 1 && at <= 3 && len(s) == at+4 && s[0] != '0' && strings.Trim(s[:at]+s[at+1:], "0123456789") == ""
}

// separator is the sign between the names of the header: a comma, or where there is none what stands there most often.
func separator(b *bufio.Reader) rune {
	head, _ := b.Peek(1 << 16)
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \r\n"), []byte("\n"))
	best, most := ',', 0
	if bytes.ContainsRune(line, ',') {
		return best
	}
	for _, c := range ";\t|" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// look reads the first rows, and says what the columns hold.
func (c *csvReader) look() ([]field, error) {
	for len(c.first) < csvFirst {
		row, err := c.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.in.FieldPos(0)
		c.lines = append(c.lines, line)
		c.first = append(c.first, slices.Clone(row))
	}
	fields := make([]field, len(c.header))
	c.points = make([]bool, len(c.header))
	for i, name := range c.header {
		fields[i] = field{name: name, cell: true}
		for _, row := range c.first {
			cell := strings.TrimSpace(row[i])
			if point, ok := decimal(cell); ok && c.in.Comma != ',' {
				cell, c.comma = point, true
			} else if _, err := parseFloat(cell); err == nil && strings.Contains(cell, ".") && !thousands(cell) {
				c.points[i] = true
			}
			fields[i].kind = kindOfText(fields[i].kind, cell)
		}
	}
	return fields, nil
}

// kindOfText is the kind of a column that so far is k and holds s.
func kindOfText(k kind, s string) kind {
	now := texts
	switch {
	case isUnknown(s):
		return k
	case s[0] == '[':
		now = lists
	case strings.EqualFold(s, "true"), strings.EqualFold(s, "false"):
		now = bools
	default:
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			now = ints
		} else if _, err := parseFloat(s); err == nil {
			now = floats
		}
	}
	switch {
	case k == anyText || k == now:
		return now
	case k == floats && now == ints || k == ints && now == floats:
		return floats
	}
	return texts
}

// rows reads the file: each field goes to its column, nil for none, and done is called after each row.
func (c *csvReader) rows(columns []csvColumn, done func() error) error {
	for n := 0; ; n++ {
		var row []string
		if n < len(c.first) {
			row = c.first[n]
		} else {
			var err error
			if row, err = c.read(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
		for i, s := range row {
			if columns[i] == nil {
				continue
			}
			if err := columns[i](strings.TrimSpace(s)); err != nil {
				return fmt.Errorf("line %d, column %s: %w", c.line(n, i), quoteName(c.header[i]), err)
			}
		}
		if err := done(); err != nil {
			return err
		}
	}
}

func (c *csvReader) line(row, column int) int {
	if row < len(c.lines) {
		return c.lines[row] + c.skipped
	}
	line, _ := c.in.FieldPos(column)
	return line + c.skipped
}

// readCSV reads a CSV file with a header. Numbers are kept in float64, as they are written.
func readCSV(r io.Reader, o Options) (*Table, error) {
	c, err := newCSVReader(r)
	if err != nil {
		return nil, err
	}
	fields, err := c.look()
	if err != nil {
		return nil, err
	}
	p, err := planOf(fields, o)
	if err != nil {
		return nil, err
	}
	f := &csvFiller{filler: newFiller(p)}
	columns := make([]csvColumn, len(fields))
	number := func(i int) bool { return fields[i].kind.numeric() && p.roles[i].part != textColumn }
	mixed := false // a version 2.1 beside decimal commas says nothing of numbers
	for i := range columns {
		columns[i] = f.column(i)
		mixed = mixed || c.points[i] && columns[i] != nil && number(i)
	}
	for i := range columns {
		if set := columns[i]; c.comma && set != nil && number(i) {
			columns[i] = func(s string) error {
				if thousands(s) && (mixed || strings.Contains(s, ".")) {
					whole := strings.NewReplacer(",", "", ".", "").Replace(s)
					return fmt.Errorf("%s may be %s or a fraction, as other numbers have the other decimal sign: "+
						"write %[2]s, or not three digits behind the sign", quoteName(s), whole)
				}
				s, _ = decimal(s)
				return set(s)
			}
		}
	}
	f.begin()
	err = c.rows(columns, func() error {
		if err := f.hotRow(f.hot); err != nil {
			return err
		}
		f.t.N++
		f.begin()
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.t.Scores64 = f.t.Scores64[:f.t.N*p.k+f.lists]
	f.t.Features = f.t.Features[:f.t.N*p.d+f.featureLists]
	t, err := f.table()
	if err == nil {
		o.tell(p)
	}
	return t, err
}

// csvFiller fills a table row by row.
type csvFiller struct {
	*filler
	lists, featureLists int // numbers read from lists
}

// begin makes room for a row of numbers in columns.
func (f *csvFiller) begin() {
	f.t.Scores64 = grow(f.t.Scores64, f.p.k)
	f.t.Features = grow(f.t.Features, f.p.d)
	f.hot = f.hot[:0]
	f.hot = grow(f.hot, len(f.p.labels))
}

// column is what to do with the fields of a column.
func (f *csvFiller) column(i int) csvColumn {
	t, r := f.t, f.p.roles[i]
	switch r.part {
	case scoreColumn:
		return number64(func(x float64) { t.Scores64[t.N*f.p.k+r.at] = x })
	case scoreList:
		return f.list(&t.K, func(v []float64) { t.Scores64, f.lists = append(t.Scores64, v...), f.lists+len(v) })
	case featureColumn:
		return number64(func(x float64) { t.Features[t.N*f.p.d+r.at] = float32(x) })
	case featureList:
		return f.list(&t.D, func(v []float64) {
			for _, x := range v {
				t.Features = append(t.Features, float32(x))
			}
			f.featureLists += len(v)
		})
	case labelColumn:
		return f.y.text
	case labelHot:
		return truth(func(x float64) { f.hot[r.at] = x })
	case labelList:
		return func(s string) error {
			v, err := numbersIn(s)
			switch {
			case err != nil:
				return err
			case len(v) == 1:
				return f.y.fraction(v[0])
			}
			return f.y.hot(v)
		}
	case timeColumn:
		return func(s string) error {
			if f.noTime != nil {
				return nil
			}
			if err := f.when.text(s); err != nil {
				return f.timeError(fmt.Sprintf("row %d: ", len(f.when.ns)), err)
			}
			return nil
		}
	case idColumn:
		cells := textCells(&t.IDs)
		return func(s string) error {
			if !utf8.ValidString(s) { // a few such bytes are let pass elsewhere; the labels of an id are found by it
				return fmt.Errorf("%s is not UTF-8: save the file as CSV UTF-8", quoteName(s))
			}
			return cells(s)
		}
	case servedColumn:
		return floatColumn(&t.Served)
	case weightColumn:
		return floatOr(&t.Weight, 1)
	case textColumn:
		return textCells(f.text[f.p.fields[i].name])
	}
	return nil
}

// list reads cells such as [0.1, 0.9] or, of NumPy, [0.1 0.9].
func (f *csvFiller) list(k *int, take func([]float64)) csvColumn {
	return func(s string) error {
		v, err := numbersIn(s)
		if err != nil {
			return err
		}
		if *k == 0 {
			*k = len(v)
		}
		if len(v) != *k || *k == 0 {
			return fmt.Errorf("%d values, the rows before have %d", len(v), *k)
		}
		take(v)
		return nil
	}
}

// numbersIn are the numbers of a cell that holds a list.
func numbersIn(s string) ([]float64, error) {
	inner, ok := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return nil, fmt.Errorf("%s: want a list such as [0.1, 0.9]", quoteName(s))
	}
	var out []float64
	if one, ok := strings.CutPrefix(strings.TrimSpace(inner), "["); ok { // [[0.1, 0.9]]: a batch of one row
		if one, ok = strings.CutSuffix(strings.TrimSpace(one), "]"); ok && !strings.ContainsAny(one, "[]") {
			inner = one
		}
	}
	for w := range strings.FieldsFuncSeq(inner, betweenNumbers) {
		if w == "..." {
			return nil, fmt.Errorf("NumPy left numbers out of its text: save a column for each class, or Parquet")
		}
		x, err := parseFloat(w)
		if err != nil {
			return nil, fmt.Errorf("%s is no number", quoteName(w))
		}
		out = append(out, x)
	}
	return out, nil
}

func betweenNumbers(r rune) bool {
	switch r {
	case ' ', ',', ';', '\t', '\n', '\r', '"':
		return true
	}
	return false
}

func number64(set func(x float64)) csvColumn {
	return func(s string) error {
		x, err := parseNumber(s, math.NaN())
		set(x)
		return err
	}
}

// truth reads 0, 1, true and false.
func truth(set func(x float64)) csvColumn {
	number := number64(set)
	return func(s string) error {
		switch strings.ToLower(s) {
		case "true":
			set(1)
		case "false":
			set(0)
		default:
			return number(s)
		}
		return nil
	}
}

// parseFloat reads a decimal number. Go would take 1_0 and 0x1p-2 as well, which are names.
func parseFloat(s string) (float64, error) {
	if strings.ContainsAny(s, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// parseNumber reads a number; empty where there is none.
func parseNumber(s string, empty float64) (float64, error) {
	if s == "" {
		return empty, nil
	}
	x, err := parseFloat(s)
	switch {
	case err != nil && isUnknown(s):
		return empty, nil
	case errors.Is(err, strconv.ErrRange):
		return x, fmt.Errorf("%s is too large, allowed is up to 1.8e308", quoteName(s))
	case err != nil:
		hint := ""
		if percent, ok := strings.CutSuffix(s, "%"); ok {
			percent, _ = decimal(strings.TrimSpace(percent))
			if x, err := parseFloat(percent); err == nil {
				hint = fmt.Sprintf(": write %.4g, not %s", x/100, quoteName(s))
			}
		}
		return x, fmt.Errorf("%s is no number%s", quoteName(s), hint)
	}
	return x, err
}

// floatColumn reads numbers, NaN where empty.
func floatColumn[T float](out *[]T) csvColumn { return floatOr(out, math.NaN()) }

func floatOr[T float](out *[]T, empty float64) csvColumn {
	return func(s string) error {
		x, err := parseNumber(s, empty)
		*out = append(*out, T(x))
		return err
	}
}

// intColumn reads labels, -1 where empty.
func intColumn(out *[]int32) csvColumn {
	return func(s string) error {
		y, ok := int32(-1), true
		if s != "" {
			if y, ok = wholeText(s); !ok {
				return fmt.Errorf("%s is no whole number", quoteName(s))
			}
		}
		*out = append(*out, y)
		return nil
	}
}

// timesColumn reads times row by row.
func timesColumn(out *[]arrowio.Time) csvColumn {
	var m moments
	return func(s string) error {
		if err := m.text(s); err != nil {
			return err
		}
		*out = append(*out, m.ns...)
		m.ns, m.handed = m.ns[:0], m.handed+1
		return nil
	}
}

func textCells(out *[]string) csvColumn {
	return func(s string) error {
		*out = append(*out, strings.Clone(s))
		return nil
	}
}
