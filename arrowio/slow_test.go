package arrowio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/plumbline/plumbline/arrowio/half"
)

// capped is an allocator that panics, which the library's reader turns into an error, once it has given out its bytes.
type capped struct {
	memory.GoAllocator
	left int
}

func (c *capped) Allocate(size int) []byte {
	if c.left -= size; size < 0 || c.left < 0 {
		panic("the test's allocator is used up")
	}
	return c.GoAllocator.Allocate(size)
}

func (c *capped) Reallocate(size int, b []byte) []byte {
	if c.left -= size; size < 0 || c.left < 0 {
		panic("the test's allocator is used up")
	}
	return c.GoAllocator.Reallocate(size, b)
}

// slowRow is one row, read value by value through the Arrow library.
type slowRow struct {
	reason         string
	id             ID
	ts             Time
	model          ModelKey
	scores         []float32
	label          int32
	features       []float32
	served, weight float32
	slices         map[string]*string
}

// slowBatch is what decoding a record batch should give.
type slowBatch struct {
	k    int
	rows []slowRow
}

// slowDecode reads a message as the documentation of the schema says, one value after the other, with the Arrow
// library. It is for messages that Decode has accepted: others can kill it.
func slowDecode(value []byte, o Options, kind Kind) (out []slowBatch, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(err, fmt.Errorf("panic: %v", r))
		}
	}()
	rd, err := ipc.NewReader(bytes.NewReader(value), ipc.WithAllocator(&capped{left: 64 << 20}))
	if err != nil {
		return nil, err
	}
	defer rd.Release()
	for rd.Next() {
		rec := rd.Record()
		if rec.NumRows() > 0 {
			out = append(out, slowRecord(rec, o, kind))
		}
	}
	return out, rd.Err()
}

func slowRecord(rec arrow.Record, o Options, kind Kind) slowBatch {
	c := slowColumns{rec: rec, kind: kind, meta: map[string]string{}}
	md := rec.Schema().Metadata()
	for i, k := range md.Keys() {
		c.meta[k] = md.Values()[i]
	}
	var b slowBatch
	c.k = c.classes()
	b.k = c.k
	for i := range int(rec.NumRows()) {
		b.rows = append(b.rows, c.row(i, o))
	}
	return b
}

type slowColumns struct {
	rec  arrow.Record
	meta map[string]string
	kind Kind
	k    int
}

// column is the column of a name; nil where absent.
func (c *slowColumns) column(name string) arrow.Array {
	if at := c.rec.Schema().FieldIndices(name); len(at) > 0 {
		return c.rec.Column(at[0])
	}
	return nil
}

// scoreColumn is the first of the score columns that is there.
func (c *slowColumns) scoreColumn() (name string, a arrow.Array) {
	for _, name = range []string{"logits", "probs", "logit", "prob"} {
		if a = c.column(name); a != nil {
			return name, a
		}
	}
	return "", nil
}

func (c *slowColumns) classes() int {
	name, a := c.scoreColumn()
	switch {
	case c.kind == Labels:
		return 0
	case name == "logit" || name == "prob":
		return 2
	}
	return width(a)
}

// width is the length of the rows of a list column that are not null.
func width(a arrow.Array) int {
	if f, ok := a.(*array.FixedSizeList); ok {
		return int(f.DataType().(*arrow.FixedSizeListType).Len())
	}
	for i := range a.Len() {
		if !a.IsNull(i) {
			lo, hi := a.(array.ListLike).ValueOffsets(i)
			return int(hi - lo)
		}
	}
	return 0
}

func slowFloat(a arrow.Array, i int) float32 {
	switch a := a.(type) {
	case *array.Float16:
		return half.Value(a.Value(i).Uint16())
	case *array.Float32:
		return a.Value(i)
	default:
		return float32(a.(*array.Float64).Value(i))
	}
}

// slowList is row i of a list column; null where it is null or has a null element.
func slowList(a arrow.Array, i int) (v []float32, null bool) {
	if a.IsNull(i) {
		return nil, true
	}
	l := a.(array.ListLike)
	lo, hi := l.ValueOffsets(i)
	for j := lo; j < hi; j++ {
		if l.ListValues().IsNull(int(j)) {
			return nil, true
		}
		v = append(v, slowFloat(l.ListValues(), int(j)))
	}
	return v, false
}

// str is row i of a text column; nil where null.
func str(a arrow.Array, i int) *string {
	if a.IsNull(i) {
		return nil
	}
	var s string
	switch a := a.(type) {
	case *array.String:
		s = a.Value(i)
	case *array.LargeString:
		s = a.Value(i)
	case *array.Dictionary:
		return str(a.Dictionary(), a.GetValueIndex(i))
	default:
		panic(fmt.Sprintf("text of type %v", a.DataType()))
	}
	s = string([]byte(s))
	return &s
}

func (c *slowColumns) row(i int, o Options) slowRow {
	r := slowRow{ts: testOrigin.Time, label: -1, served: nan32, weight: 1, slices: map[string]*string{}}
	no := func(reason string) {
		if r.reason == "" {
			r.reason = reason
		}
	}
	if a := c.column("id"); a != nil {
		var ok bool
		if r.id, ok = slowID(a, i); !ok {
			no(NullRow)
		}
	}
	if a := c.column("ts"); a != nil {
		switch ns, ok := slowTime(a.(*array.Timestamp), i); {
		case a.IsNull(i):
			no(NullRow)
		case !ok:
			no(TimeRange)
		default:
			r.ts = ns
		}
	}
	if r.model = c.model(i); r.model.Model == "" && c.kind == Predictions {
		no(NullRow)
	}
	if c.kind == Labels {
		c.label(&r, i, o, no)
		return r
	}
	c.scores(&r, i, no)
	c.label(&r, i, o, no)
	if a := c.column("features"); a != nil {
		if v, null := slowList(a, i); !null {
			r.features = v
		}
	}
	if a := c.column("served"); a != nil && !a.IsNull(i) {
		if r.served = slowFloat(a, i); !(r.served >= 0 && r.served <= 1) {
			no(BadServed)
		}
	}
	if a := c.column("weight"); a != nil && !a.IsNull(i) {
		if r.weight = slowFloat(a, i); !(r.weight > 0 && r.weight <= 1<<20) {
			no(BadWeight)
		}
	}
	for _, s := range o.Slices {
		if a := c.column(s); a != nil {
			if r.slices[s] = str(a, i); r.slices[s] != nil && *r.slices[s] == "" {
				r.slices[s] = nil
			}
		}
	}
	return r
}

func slowID(a arrow.Array, i int) (id ID, ok bool) {
	if a.IsNull(i) {
		return id, false
	}
	var b []byte
	switch a := a.(type) {
	case *array.String:
		b = []byte(a.Value(i))
	case *array.LargeString:
		b = []byte(a.Value(i))
	case *array.Binary:
		b = a.Value(i)
	case *array.LargeBinary:
		b = a.Value(i)
	case *array.Int64:
		b = binary.BigEndian.AppendUint64(nil, uint64(a.Value(i)))
	default:
		b = binary.BigEndian.AppendUint64(nil, a.(*array.Uint64).Value(i))
	}
	return ID(xxh3.Hash128(b).Bytes()), len(b) > 0
}

func slowTime(a *array.Timestamp, i int) (ns Time, ok bool) {
	t := int64(a.Value(i))
	per := map[arrow.TimeUnit]int64{arrow.Second: 1e9, arrow.Millisecond: 1e6, arrow.Microsecond: 1e3,
		arrow.Nanosecond: 1}[a.DataType().(*arrow.TimestampType).Unit]
	ns = t * per
	return ns, ns/per == t && (t != math.MinInt64 || per == 1)
}

func (c *slowColumns) model(i int) ModelKey {
	k := ModelKey{c.meta[MetaModel], c.meta[MetaVersion]}
	if k.Version == "" && c.kind == Predictions {
		k.Version = DefaultVersion
	}
	if a := c.column("model"); a != nil {
		k.Model = ""
		if s := str(a, i); s != nil {
			k.Model = *s
		}
	}
	if a := c.column("version"); a != nil {
		if s := str(a, i); s != nil && *s != "" {
			k.Version = *s
		}
	}
	return k
}

func (c *slowColumns) scores(r *slowRow, i int, no func(string)) {
	name, a := c.scoreColumn()
	if name == "logit" || name == "prob" {
		if a.IsNull(i) {
			no(NullRow)
			return
		}
		x := slowFloat(a, i)
		r.scores = []float32{0, x}
		if name == "prob" {
			r.scores[0] = 1 - x
		}
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) || name == "prob" && (x < 0 || x > 1) {
			no(NonfiniteScores)
		}
		return
	}
	v, null := slowList(a, i)
	if null {
		no(NullRow)
		return
	}
	r.scores = v
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) || name == "probs" && (x < 0 || x > 1) {
			no(NonfiniteScores)
		}
	}
	if name == "probs" && math.Abs(sum-1) > .05+1e-5 {
		no(NonfiniteScores)
	}
}

func (c *slowColumns) label(r *slowRow, i int, o Options, no func(string)) {
	a := c.column("label")
	if a == nil {
		return
	}
	if a.IsNull(i) {
		if c.kind == Labels {
			no(NullRow)
		}
		return
	}
	limit := c.k
	if limit == 0 {
		limit = o.MaxClasses
	}
	// Text is the one form that all integer types have.
	var y int64
	if n, err := fmt.Sscan(a.ValueStr(i), &y); n != 1 || err != nil || y < 0 || y >= int64(limit) {
		no(LabelRange)
		return
	}
	r.label = int32(y)
}

// differ compares what Decode gave with what the library reads and names the first difference; "" where there is none.
func differ(got []*Batch, want []slowBatch) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d batches, the library reads %d", len(got), len(want))
	}
	for j, b := range got {
		w := want[j]
		if b.N != len(w.rows) || b.K != w.k {
			return fmt.Sprintf("batch %d: %d rows of %d classes, the library reads %d of %d", j, b.N, b.K, len(w.rows),
				w.k)
		}
		for i := range b.N {
			if d := differRow(b, i, &w.rows[i]); d != "" {
				return fmt.Sprintf("batch %d, row %d: %s", j, i, d)
			}
		}
	}
	return ""
}

func differRow(b *Batch, i int, w *slowRow) string {
	reason := ""
	if b.Reject != nil {
		reason = b.Reject[i]
	}
	if reason != w.reason {
		return fmt.Sprintf("rejected for %q, want %q", reason, w.reason)
	}
	if reason != "" {
		return ""
	}
	m := b.Models[0]
	if b.Model != nil {
		m = b.Models[b.Model[i]]
	}
	switch {
	case b.IDs != nil && b.IDs[i] != w.id:
		return fmt.Sprintf("id %x, want %x", b.IDs[i], w.id)
	case b.TS[i] != w.ts:
		return fmt.Sprintf("ts %d, want %d", b.TS[i], w.ts)
	case m != w.model:
		return fmt.Sprintf("model %q, want %q", m, w.model)
	case b.Label != nil && b.Label[i] != w.label:
		return fmt.Sprintf("label %d, want %d", b.Label[i], w.label)
	case !sameBits(b.Scores[i*b.K:(i+1)*b.K], w.scores):
		return fmt.Sprintf("scores %v, want %v", b.Scores[i*b.K:(i+1)*b.K], w.scores)
	case b.D > 0 && w.features != nil && !sameBits(b.Features[i*b.D:(i+1)*b.D], w.features):
		return fmt.Sprintf("features %v, want %v", b.Features[i*b.D:(i+1)*b.D], w.features)
	case b.D > 0 && w.features == nil && slices.ContainsFunc(b.Features[i*b.D:(i+1)*b.D],
		func(x float32) bool { return x == x }):
		return fmt.Sprintf("features %v, want NaN", b.Features[i*b.D:(i+1)*b.D])
	case b.Served != nil && !sameBits(b.Served[i:i+1], []float32{w.served}):
		return fmt.Sprintf("served %v, want %v", b.Served[i], w.served)
	case b.Weight != nil && b.Weight[i] != w.weight:
		return fmt.Sprintf("weight %v, want %v", b.Weight[i], w.weight)
	}
	return differSlices(b, i, w)
}

func differSlices(b *Batch, i int, w *slowRow) string {
	if len(b.Slices) != len(w.slices) {
		return fmt.Sprintf("%d slice columns, want %d", len(b.Slices), len(w.slices))
	}
	for _, s := range b.Slices {
		want := w.slices[s.Name]
		switch {
		case (s.Index[i] < 0) != (want == nil):
			return fmt.Sprintf("slice %s: null is %v", s.Name, s.Index[i] < 0)
		case want != nil && (s.Values[s.Index[i]] != *want || !utf8.ValidString(*want)):
			return fmt.Sprintf("slice %s: %q, want %q", s.Name, s.Values[s.Index[i]], *want)
		}
	}
	return ""
}

// sameBits compares values, NaN being equal to NaN.
func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x == y || x != x && y != y })
}
