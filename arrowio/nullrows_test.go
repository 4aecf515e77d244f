package arrowio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
)

// TestOnlyNullLists: rows that are null, and of which nothing says how many values they would have, are rejected as
// null rows, one by one; rows that are there and empty make no message.
func TestOnlyNullLists(t *testing.T) {
	for _, l := range []arrow.DataType{arrow.ListOf(arrow.PrimitiveTypes.Float32),
		arrow.LargeListOf(arrow.PrimitiveTypes.Float64), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)} {
		v := stream(
			t,
			[]arrow.Field{field("logits", l), field("label", arrow.PrimitiveTypes.Uint16)},
			model,
			rowsOf(t, `{"logits":null,"label":0}`, `{"logits":null,"label":1}`),
		)
		b := decodeOne(t, Options{}, v, Predictions)
		equal(t, l.String(), b.Reject, []string{NullRow, NullRow})
		equal(t, l.String()+" scores", len(b.Scores), b.N*b.K)
	}
}

// TestNullTypeColumns: a column of type null, which Arrow's libraries make where they see no value, is as good as
// absent if its values may be missing. A message that needs the column is refused.
func TestNullTypeColumns(t *testing.T) {
	two := field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))
	id, label := field("id", arrow.BinaryTypes.String), field("label", arrow.PrimitiveTypes.Int8)
	none := func(name string) arrow.Field { return field(name, arrow.Null) }
	read := func(kind Kind, fields ...arrow.Field) ([]*Batch, error) {
		row := map[string]any{}
		for _, f := range fields {
			if f.Type != arrow.Null {
				row[f.Name] = map[string]any{"id": "a", "logits": []int{1, 2}, "label": 1}[f.Name]
			}
		}
		text, _ := json.Marshal(row)
		v := stream(t, fields, model, rowsOf(t, string(text)))
		return NewDecoder(Options{Slices: []string{"region"}}).Decode(v, Origin{}, kind)
	}
	for _, name := range []string{"label", "features", "version", "served", "weight", "region"} {
		bs, err := read(Predictions, id, two, none(name))
		if err != nil || len(bs) != 1 {
			t.Errorf("%s: got %v, %v", name, bs, err)
			continue
		}
		b := bs[0]
		equal(t, name+" rejects", b.Rejected(), 0)
		equal(t, name+" model", b.Models[0], ModelKey{"m", "1"})
		equal(t, name+" absent", b.Label == nil && b.D == 0 && b.Served == nil && b.Weight == nil && len(b.Slices) == 0,
			true)
	}
	for _, c := range []struct {
		kind   Kind
		fields []arrow.Field
		want   string
	}{
		{Predictions, []arrow.Field{none("id"), two, label}, `column "id" is null, allowed is utf8`},
		{Predictions, []arrow.Field{id, none("logits"), label}, `column "logits" is null, allowed is a list`},
		{Predictions, []arrow.Field{two, none("label")}, "neither the column id, to join labels by, nor"},
		{Predictions, []arrow.Field{id, two, none("label"), none("label")}, `column "label" occurs twice`},
		{Labels, []arrow.Field{id, none("label")}, `column "label" is null, allowed is an integer`},
	} {
		if _, err := read(c.kind, c.fields...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %s", c.fields, err, c.want)
		}
	}
}

// TestMissingNamesTheColumns: a batch says which columns the first of its null rows lacks.
func TestMissingNamesTheColumns(t *testing.T) {
	id, label := field("id", arrow.BinaryTypes.String), field("label", arrow.PrimitiveTypes.Int8)
	logits := field("logits", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))
	fields := []arrow.Field{id, logits, field("ts", arrow.FixedWidthTypes.Timestamp_s),
		field("model", arrow.BinaryTypes.String)}
	for _, c := range []struct {
		kind   Kind
		fields []arrow.Field
		rows   []string
		want   []string
	}{
		{Predictions, fields, []string{`{"id":"a","logits":[1,2],"ts":1,"model":"m"}`}, nil},
		{Predictions, fields, []string{`{"id":"","logits":[1,2],"ts":1,"model":"m"}`}, []string{"id"}},
		{Predictions, fields, []string{`{"id":"a","logits":[1,2],"ts":null,"model":"m"}`}, []string{"ts"}},
		{Predictions, fields, []string{`{"id":"a","logits":[null,2],"ts":1,"model":"m"}`}, []string{"logits"}},
		{Predictions, fields, []string{`{"id":"a","logits":[1,2],"ts":1,"model":null}`,
			`{"id":null,"logits":[1,2],"ts":1,"model":""}`}, []string{"model"}},
		{Predictions, fields, []string{`{"id":"a","logits":[1,2],"ts":1,"model":"m"}`,
			`{"id":null,"logits":[1,2],"ts":1,"model":""}`, `{"id":"a","logits":null}`}, []string{"id", "model"}},
		{Labels, []arrow.Field{id, label}, []string{`{"id":"a","label":null}`, `{"id":"b"}`}, []string{"label"}},
	} {
		b := decodeOne(t, Options{}, stream(t, c.fields, model, rowsOf(t, c.rows...)), c.kind)
		slices.Sort(b.Missing)
		slices.Sort(c.want)
		equal(t, fmt.Sprint(c.rows), b.Missing, c.want)
	}
}

// TestMissingSliceValues: a row without a value in a slice column, as files and archives have them, is in no slice of
// it, and not in one of the empty text.
func TestMissingSliceValues(t *testing.T) {
	c := testColumns(3, 2)
	c.Slices = []StringColumn{{Name: "region", Values: []string{"eu", "", "us"}}}
	b := decodeOne(t, Options{Slices: []string{"region"}}, mustEncode(t, c), Predictions)
	var got []string
	for _, i := range b.Slices[0].Index {
		v := "none"
		if i >= 0 {
			v = b.Slices[0].Values[i]
		}
		got = append(got, v)
	}
	equal(t, "values", got, []string{"eu", "none", "us"})
}
