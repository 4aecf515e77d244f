package batchtest

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Split returns the rows of each shard, by the partition of their ids.
func Split(rows []Row, shards int) [][]Row {
	out := make([][]Row, shards)
	for _, r := range rows {
		p := murmur.PartitionOf([]byte(r.ID), shards)
		out[p] = append(out[p], r)
	}
	return out
}

// Predictions encodes rows, in the order given, as records of the logits topic with at most batch rows of one model
// version each.
func Predictions(t testing.TB, rows []Row, batch int) []pipeline.Record {
	t.Helper()
	return records(rows, batch, pipeline.Logits, func(rows []Row) []byte { return EncodePredictions(t, rows, false) },
		func(r *Row) int64 { return r.TS })
}

// Inline is Predictions with the labels in the same records.
func Inline(t testing.TB, rows []Row, batch int) []pipeline.Record {
	t.Helper()
	return records(rows, batch, pipeline.Logits, func(rows []Row) []byte { return EncodePredictions(t, rows, true) },
		func(r *Row) int64 { return r.TS })
}

// Labels encodes the labels of rows, in the order given, as records of the labels topic.
func Labels(t testing.TB, rows []Row, batch int) []pipeline.Record {
	t.Helper()
	return records(rows, batch, pipeline.Labels, func(rows []Row) []byte { return EncodeLabels(t, rows) },
		func(r *Row) int64 { return r.LabelTS })
}

func records(rows []Row, batch int, in pipeline.Input, encode func([]Row) []byte,
	ts func(*Row) int64) []pipeline.Record {
	var out []pipeline.Record
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && n < batch && rows[n].Model == rows[0].Model && rows[n].Version == rows[0].Version {
			n++
		}
		out = append(out, pipeline.Record{Input: in, Topic: in.String(), Offset: int64(len(out)), Time: ts(&rows[n-1]),
			Value: encode(rows[:n])})
		rows = rows[n:]
	}
	return out
}

// EncodePredictions encodes rows of one model version.
func EncodePredictions(t testing.TB, rows []Row, inline bool) []byte {
	t.Helper()
	c := arrowio.Columns{Model: rows[0].Model, Version: rows[0].Version, K: len(rows[0].Scores)}
	for i := range rows {
		r := &rows[i]
		c.IDs = append(c.IDs, r.ID)
		c.TS = append(c.TS, r.TS)
		if r.Probs {
			c.Probs = append(c.Probs, r.Scores...)
		} else {
			c.Logits = append(c.Logits, r.Scores...)
		}
		if inline {
			c.Label = append(c.Label, r.Label)
		}
		c.Features, c.D = append(c.Features, r.Features...), len(r.Features)
		c.Weight = append(c.Weight, r.Weight)
		c.Served = append(c.Served, r.Served)
	}
	c.Weight, c.Served = dropNaN(c.Weight), dropNaN(c.Served)
	if rows[0].Region != "" {
		s := arrowio.StringColumn{Name: "region"}
		for i := range rows {
			s.Values = append(s.Values, rows[i].Region)
		}
		c.Slices = append(c.Slices, s)
	}
	b, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dropNaN returns nil, the absent column, where no row has a value.
func dropNaN(v []float32) []float32 {
	for _, x := range v {
		if !math.IsNaN(float64(x)) {
			return v
		}
	}
	return nil
}

// EncodeLabels encodes the labels of rows of one model version.
func EncodeLabels(t testing.TB, rows []Row) []byte {
	t.Helper()
	var ids []string
	var ts []int64
	var label []int32
	for _, r := range rows {
		ids, ts, label = append(ids, r.ID), append(ts, r.LabelTS), append(label, r.Label)
	}
	b, err := arrowio.EncodeLabels(rows[0].Model, rows[0].Version, ids, ts, label)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
