package arrowio

import (
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
