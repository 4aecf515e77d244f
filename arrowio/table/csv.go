package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

// csvColumn appends one field to the table.
type csvColumn func(s string) error

// csvReader holds the state of reading a CSV file.
type csvReader struct {
	in     *csv.Reader
	header []string
	t      *Table
	text   map[string]*[]string
}

// newCSVReader reads the header.
func newCSVReader(r io.Reader) (*csvReader, error) {
	in := csv.NewReader(bufio.NewReaderSize(r, 1<<20))
	in.ReuseRecord = true
	row, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	header := slices.Clone(row)
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // spreadsheets write a byte order mark
	return &csvReader{in: in, header: header, t: &Table{}, text: map[string]*[]string{}}, nil
}

// rows reads the rest of the file: each field goes to its column, nil for none, and done is called after each row.
func (c *csvReader) rows(columns []csvColumn, done func() error) error {
	for {
		row, err := c.in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i, s := range row {
			if columns[i] == nil {
				continue
			}
			if err := columns[i](strings.TrimSpace(s)); err != nil {
				line, _ := c.in.FieldPos(i)
				return fmt.Errorf("line %d, column %s: %w", line, c.header[i], err)
			}
		}
		c.t.N++
		if err := done(); err != nil {
			return err
		}
	}
}

// readCSV reads a CSV file with a header. Numbers are kept in float64, as they are written.
func readCSV(r io.Reader) (*Table, error) {
	c, err := newCSVReader(r)
	if err != nil {
		return nil, err
	}
	columns, err := c.columns(c.header)
	if err != nil {
		return nil, err
	}
	if err := c.rows(columns, func() error { return nil }); err != nil {
		return nil, err
	}
	text := make(map[string][]string, len(c.text))
	for name, v := range c.text {
		text[name] = *v
	}
	c.t.setText(text)
	return c.t, nil
}

// columns says what to do with each column, and sets K, D and Probs.
func (c *csvReader) columns(header []string) ([]csvColumn, error) {
	t := c.t
	scores := ""
	for _, p := range []string{"logits_0", "probs_0", "logit", "prob"} {
		if scores == "" && slices.Contains(header, p) {
			scores = strings.TrimSuffix(p, "_0")
		}
	}
	if scores == "" {
		return nil, fmt.Errorf("no column logits_0, probs_0, logit or prob; there are: %s", strings.Join(header, ", "))
	}
	t.Probs, t.Source = strings.HasPrefix(scores, "prob"), "columns "+scores
	out := make([]csvColumn, len(header))
	seen := make(map[string]bool)
	for i, name := range header {
		if seen[name] {
			return nil, fmt.Errorf("column %s occurs twice", name)
		}
		seen[name] = true
		var err error
		if out[i], err = c.column(name, scores); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *csvReader) column(name, scores string) (csvColumn, error) {
	t := c.t
	if name == scores { // logit or prob
		t.K = 2
		return c.binary, nil
	}
	if k, ok := indexed(name, scores); ok {
		if k != t.K {
			return nil, fmt.Errorf("column %s where %s_%d is due", name, scores, t.K)
		}
		t.K++
		return floatColumn(&t.Scores64), nil
	}
	if d, ok := indexed(name, "features"); ok {
		if d != t.D {
			return nil, fmt.Errorf("column %s where features_%d is due", name, t.D)
		}
		t.D++
		return floatColumn(&t.Features), nil
	}
	switch name {
	case "label":
		return intColumn(&t.Label), nil
	case "ts":
		return timeColumn(&t.TS), nil
	case "served":
		return floatColumn(&t.Served), nil
	case "weight":
		return floatOr(&t.Weight, 1), nil
	case "id":
		return textColumn(&t.IDs), nil
	}
	v := new([]string)
	c.text[name] = v
	return textColumn(v), nil
}

// indexed says whether name is prefix_i.
func indexed(name, prefix string) (int, bool) {
	s, ok := strings.CutPrefix(name, prefix+"_")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(s)
	return i, err == nil && i >= 0
}

func (c *csvReader) binary(s string) error {
	var v []float64
	if err := floatColumn(&v)(s); err != nil {
		return err
	}
	x := v[0]
	rest := 0.0
	if c.t.Probs {
		rest = 1 - x
	}
	c.t.Scores64 = append(c.t.Scores64, rest, x)
	return nil
}

// floatColumn reads numbers, NaN where empty.
func floatColumn[T float](out *[]T) csvColumn { return floatOr(out, math.NaN()) }

func floatOr[T float](out *[]T, empty float64) csvColumn {
	return func(s string) error {
		x := empty
		if s != "" {
			var err error
			if x, err = strconv.ParseFloat(s, 64); err != nil {
				return err
			}
		}
		*out = append(*out, T(x))
		return nil
	}
}

// intColumn reads labels, -1 where empty.
func intColumn(out *[]int32) csvColumn {
	return func(s string) error {
		y := int64(-1)
		if s != "" {
			var err error
			if y, err = strconv.ParseInt(s, 10, 32); err != nil {
				return err
			}
		}
		*out = append(*out, int32(y))
		return nil
	}
}

// timeColumn reads RFC 3339 or whole nanoseconds since 1970.
func timeColumn(out *[]arrowio.Time) csvColumn {
	return func(s string) error {
		if ns, err := strconv.ParseInt(s, 10, 64); err == nil {
			*out = append(*out, ns)
			return nil
		}
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return fmt.Errorf("%q is neither RFC 3339 nor nanoseconds since 1970", s)
		}
		*out = append(*out, at.UnixNano())
		return nil
	}
}

func textColumn(out *[]string) csvColumn {
	return func(s string) error {
		*out = append(*out, strings.Clone(s))
		return nil
	}
}
