package arrowio

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/arrowio/wire"
)

var testOrigin = Origin{Topic: "t", Partition: 3, Offset: 42, Time: 1_700_000_000_000_000_000}

func testColumns(n, k int) Columns {
	c := Columns{Model: "m", Version: "7", K: k, D: 3, Slices: []StringColumn{{Name: "region"}, {Name: "tenant"}}}
	for i := range n {
		c.IDs = append(c.IDs, fmt.Sprint("id-", i))
		c.TS = append(c.TS, testOrigin.Time+int64(i))
		c.Label = append(c.Label, int32(i%(k+1)-1))
		for j := range k {
			c.Logits = append(c.Logits, float32(math.Sin(float64(i*k+j))*4))
		}
		for j := range c.D {
			c.Features = append(c.Features, float32(i)+float32(j)/4)
		}
		c.Served = append(c.Served, float32(i%5)/4)
		c.Weight = append(c.Weight, 1+float32(i%3))
		c.Slices[0].Values = append(c.Slices[0].Values, []string{"eu", "us"}[i%2])
		c.Slices[1].Values = append(c.Slices[1].Values, fmt.Sprint("t", i%4))
	}
	return c
}

func mustEncode(t testing.TB, c Columns) []byte {
	t.Helper()
	v, err := EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// decodeOne decodes a message that has one batch.
func decodeOne(t testing.TB, o Options, value []byte, kind Kind) *Batch {
	t.Helper()
	bs, err := NewDecoder(o).Decode(value, testOrigin, kind)
	if err != nil {
		t.Fatal(err)
	}
	if len(bs) != 1 {
		t.Fatalf("got %d batches, want 1", len(bs))
	}
	return bs[0]
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestPredictionsRoundTrip(t *testing.T) {
	c := testColumns(17, 5)
	b := decodeOne(t, Options{Slices: []string{"tenant", "absent", "region"}}, mustEncode(t, c), Predictions)
	defer b.Release()
	equal(t, "N, K, D", [3]int{b.N, b.K, b.D}, [3]int{17, 5, 3})
	equal(t, "probs", b.Probs, false)
	equal(t, "models", b.Models, []ModelKey{{"m", "7"}})
	equal(t, "ts", b.TS, c.TS)
	equal(t, "scores", b.Scores, c.Logits)
	equal(t, "label", b.Label, c.Label)
	equal(t, "features", b.Features, c.Features)
	equal(t, "served", b.Served, c.Served)
	equal(t, "weight", b.Weight, c.Weight)
	equal(t, "reject", b.Reject, []string(nil))
	equal(t, "origin", b.Origin, testOrigin)
	for i, id := range c.IDs {
		equal(t, "id", b.IDs[i], HashID(id))
	}
	equal(t, "slices", len(b.Slices), 2)
	for s, name := range []string{"tenant", "region"} {
		equal(t, "slice name", b.Slices[s].Name, name)
		for i := range b.N {
			equal(t, name, b.Slices[s].Values[b.Slices[s].Index[i]], c.Slices[1-s].Values[i])
		}
	}
}

func TestLabelsRoundTrip(t *testing.T) {
	v, err := EncodeLabels("m", "", []string{"a", "b", "c"}, []Time{1, 2, 3}, []int32{4, -1, 0})
	if err != nil {
		t.Fatal(err)
	}
	b := decodeOne(t, Options{}, v, Labels)
	equal(t, "label", b.Label, []int32{4, -1, 0})
	equal(t, "ts", b.TS, []Time{1, 2, 3})
	equal(t, "reject", b.Reject, []string{"", NullRow, ""})
	equal(t, "models", b.Models, []ModelKey{{"m", ""}})
}

func TestRejectedRowsLeaveTheOthers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	c := Columns{
		Model:  "m",
		K:      2,
		IDs:    []string{"a", "b", "", "d", "e", "f", "g"},
		Logits: []float32{1, 2, nan, 0, 1, 2, 0, -inf, 1, 2, 3, 4, 5, 6},
		Label:  []int32{0, 1, 1, 1, 2, 0, -1},
		Weight: []float32{1, 1, 1, 1, 1, 0, nan},
		Served: []float32{nan, 0, 1, 1, 1, 1, 1.5},
	}
	b := decodeOne(t, Options{}, mustEncode(t, c), Predictions)
	equal(t, "reject", b.Reject,
		[]string{"", NonfiniteScores, NullRow, NonfiniteScores, LabelRange, BadWeight, BadServed})
	equal(t, "rejected", b.Rejected(), 6)
	equal(t, "the label that is none", b.BadLabel, "2")
	equal(t, "time of the record", b.TS[6], testOrigin.Time)
	equal(t, "default version", b.Models, []ModelKey{{"m", DefaultVersion}})
	equal(t, "null weight", b.Weight[6], float32(1))
}

// TestNullWeightOfHalves: 1 in a prediction; a request or a response leaves it to the other.
func TestNullWeightOfHalves(t *testing.T) {
	for _, side := range []Side{Whole, Request, Response} {
		rows := &Rows{N: 2, Side: side, Model: "m", Version: "1", IDs: &TextColumn{Data: []byte("ab"),
			Ends: []int32{1, 2}}, TS: []Time{1, 2}, Weight: []float32{3, 1}, NoWeight: []bool{false, true}}
		if side != Request {
			rows.Form, rows.K, rows.Scores = ScoreForms[0], 2, []float32{1, 2, 3, 4}
		}
		value, err := (&RowsEncoder{}).Append(nil, rows)
		if err != nil {
			t.Fatal(err)
		}
		b := decodeOne(t, Options{}, value, Predictions)
		if got := b.Weight; got[0] != 3 || (got[1] == 1) != (side == Whole) || (got[1] != got[1]) != (side != Whole) ||
			b.Reject != nil {
			t.Errorf("side %q: weights %v, rejected %v", sides[side], got, b.Reject)
		}
	}
}

func TestProbabilitiesMustBeDistributions(t *testing.T) {
	nan := float32(math.NaN())
	c := Columns{
		Model: "m",
		K:     2,
		Label: []int32{0, 0, 0, 0, 0, 0, 0},
		Probs: []float32{.5, .5, .5, .56, 1.2, -.2, nan, 1, .97, 0, .9, .05, .92, .13}, // the last: .95 and 1.05
	}
	b := decodeOne(t, Options{}, mustEncode(t, c), Predictions)
	equal(t, "reject", b.Reject, []string{"", NonfiniteScores, NonfiniteScores, NonfiniteScores, "", "", ""})
	equal(t, "probs", b.Probs, true)
}

func TestReleasedMemoryIsReused(t *testing.T) {
	d := NewDecoder(Options{Slices: []string{"region"}})
	v := mustEncode(t, testColumns(64, 10))
	for range 3 {
		bs, err := d.Decode(v, testOrigin, Predictions)
		if err != nil {
			t.Fatal(err)
		}
		bs[0].Retain()
		bs[0].Release()
		equal(t, "rows while retained", bs[0].N, 64)
		bs[0].Release()
	}
}

// wantReason decodes value and expects it to be refused as a whole.
func wantReason(t *testing.T, o Options, value []byte, kind Kind, reason string) {
	t.Helper()
	bs, err := NewDecoder(o).Decode(value, testOrigin, kind)
	var de *DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("got %d batches and error %v, want a DecodeError %q", len(bs), err, reason)
	}
	if de.Reason != reason || len(bs) != 0 {
		t.Fatalf("got %d batches, reason %q (%s), want %q", len(bs), de.Reason, de.Detail, reason)
	}
}

func TestSchemaCacheIsBounded(t *testing.T) {
	d := NewDecoder(Options{Schemas: 2})
	for i := range 10 {
		c := testColumns(2, 3)
		c.Model = fmt.Sprint("m", i%5)
		bs, err := d.Decode(mustEncode(t, c), testOrigin, Predictions)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "model", bs[0].Models[0].Model, c.Model)
	}
	equal(t, "plans", d.plans.order.Len(), 2)
	equal(t, "keys", len(d.plans.byKey[Predictions]), 2)
}

func TestKindsDoNotShareAPlan(t *testing.T) {
	d := NewDecoder(Options{})
	v := mustEncode(t, testColumns(4, 3))
	if _, err := d.Decode(v, testOrigin, Labels); err != nil {
		t.Fatal(err)
	}
	bs, err := d.Decode(v, testOrigin, Predictions)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "K", bs[0].K, 3)
	wantReason(t, Options{}, v[:len(v)-20], Labels, wire.Truncated)
}

func BenchmarkDecode(b *testing.B) {
	for _, k := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("K=", k), func(b *testing.B) {
			c := testColumns(1024, k)
			c.Features, c.Served, c.Weight, c.Slices = nil, nil, nil, nil
			v, d := mustEncode(b, c), NewDecoder(Options{})
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			for b.Loop() {
				bs, err := d.Decode(v, testOrigin, Predictions)
				if err != nil {
					b.Fatal(err)
				}
				for _, x := range bs {
					x.Release()
				}
			}
		})
	}
}
