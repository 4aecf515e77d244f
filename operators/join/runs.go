package join

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join/store"
)

// Nearly all rows are alone with their id: a prediction is its first row, a label finds one prediction. Such rows are
// processed in runs, each step for the whole run before the next, so that waits for memory overlap and common
// decisions are made once. The results are the same as row by row.

// runOf returns the end of the run from row i on: prefetched good rows of the same model version.
func runOf(w *buffer, b *arrowio.Batch, i int) (end int) {
	end = i + 1
	for end < w.looked && b.Good(end) && (b.Model == nil || b.Model[end] == b.Model[i]) {
		end++
	}
	return end
}

// awaitRun lets prefetched predictions of a batch from i on wait, up to the first that has a label or whose id has a
// row already. It returns how many.
func awaitRun(j *Operator, b *arrowio.Batch, i int) int {
	w := &j.w
	room := j.cfg.MaxRows - w.n.bounded()
	if w.onDisk() > 0 || room <= 0 || j.cfg.FeatureBytes > 0 && b.D > 0 {
		return 0
	}
	end := min(runOf(w, b, i), i+room)
	if b.Label != nil {
		for at := i; at < end; at++ {
			if b.Label[at] >= 0 {
				end = at
			}
		}
	}
	placeRun(&w.memory, w.hashes[w.at(i):][:end-i])
	n := len(w.run)
	if n == 0 {
		return 0
	}
	key, _ := b.ModelOf(i)
	writeRun(&w.memory, b, i, w.model(key))
	if w.columns > 0 {
		sliceRun(w, b, i)
	}
	w.live += n
	w.bytes += n * (entryBytes + 4*b.K)
	w.n.predictions += n
	return n
}

// placeRun adds the ids of the hashes to the index, up to the first that a row may have already; run gets their
// entries.
func placeRun(w *memory, hashes []uint32) {
	w.run = w.run[:0]
	free, next := len(w.free), len(w.entries)
	for _, h := range hashes {
		e := int32(next)
		if free > 0 {
			e = w.free[free-1]
		}
		if !w.index.AddNew(h, refOf(e)) {
			break
		}
		if w.run = append(w.run, e); free > 0 {
			free--
		} else {
			next++
		}
	}
	w.free = w.free[:free]
	w.slices = slices.Grow(w.slices, (next-len(w.entries))*w.columns)[:next*w.columns]
	w.entries = slices.Grow(w.entries, next-len(w.entries))[:next]
}

// writeRun fills the run's entries with rows of a batch from i on, each the newest in arrival.
func writeRun(w *memory, b *arrowio.Batch, i int, model int32) {
	arrived := arriveRun(w)
	pool := w.pools.of(b.K)
	var slot int32
	for r, left := 0, 0; r < len(w.run); r, slot, left = r+1, slot+1, left-1 {
		at := i + r
		if left == 0 {
			slot, left = pool.takeRun(len(w.run) - r)
			copy(pool.rows(slot, left), b.Scores[at*b.K:])
		}
		p := &w.entries[w.run[r]]
		p.id, p.ts, p.chain, p.at = b.IDs[at], b.TS[at], -1, arrived+uint32(r)
		p.label, p.model, p.k, p.d, p.slot = -1, model, int32(b.K), 0, slot
		p.served, p.weight = float32(math.NaN()), 1
		if b.Served != nil {
			p.served = b.Served[at]
		}
		if b.Weight != nil {
			p.weight = b.Weight[at]
		}
		p.named, p.used, p.probs, p.onDisk = false, false, b.Probs, false
	}
}

// sliceRun sets the slice values of the run's entries from rows of a batch from i on. Values are numbered in the order
// of rows, then columns.
func sliceRun(w *buffer, b *arrowio.Batch, i int) {
	w.dicts = slices.Grow(w.dicts[:0], w.columns)[:w.columns]
	for c, column := range w.names {
		d := &w.dicts[c]
		d.rows = nil
		if d.of = slices.IndexFunc(b.Slices, func(s arrowio.SliceColumn) bool { return s.Name == column }); d.of < 0 {
			continue
		}
		d.rows = b.Slices[d.of].Index[i:][:len(w.run)]
		d.numbers = slices.Grow(d.numbers[:0], min(len(b.Slices[d.of].Values), atOnce))
		d.numbers = d.numbers[:min(len(b.Slices[d.of].Values), atOnce)]
		for v := range d.numbers {
			d.numbers[v] = -1
		}
	}
	for r, e := range w.run {
		values := w.slicesOf(e)
		for c := range values {
			d := &w.dicts[c]
			if r < len(d.rows) && uint(d.rows[r]) < uint(len(d.numbers)) && d.numbers[d.rows[r]] >= 0 { // nearly all
				values[c] = d.numbers[d.rows[r]]
			} else {
				values[c] = d.value(w, b, i+r)
			}
		}
	}
}

// dict is a slice column of a batch: its index there (-1 = absent), its values for the run, and the numbers of its
// first values in names.values (-1 = not looked up yet).
type dict struct {
	of      int
	rows    []int32
	numbers []int32
}

func (d *dict) value(w *buffer, b *arrowio.Batch, i int) int32 {
	if d.of < 0 {
		return -1
	}
	column := &b.Slices[d.of]
	v := column.Index[i]
	if v < 0 {
		return -1
	}
	if int(v) >= len(d.numbers) {
		return w.value(column.Values[v])
	}
	if d.numbers[v] < 0 {
		d.numbers[v] = w.value(column.Values[v])
	}
	return d.numbers[v]
}

// meetRun joins prefetched labels of a batch from i on with waiting predictions in memory, up to the first label
// without exactly one prediction that is alone with its id, with another model version, or that stays. It returns how
// many.
func meetRun(j *Operator, b *arrowio.Batch, i int) (n int, err error) {
	w := &j.w
	first := foundAhead(&w.memory, b, i)
	if first < 0 || w.onDisk() > 0 || w.entries[first].d > 0 {
		return 0, nil
	}
	p := &w.entries[first]
	key, named := b.ModelOf(i)
	if named && !labelFits(key, w.models[p.model]) {
		return 0, nil
	}
	gk := groupKey{model: p.model, k: int(p.k), probs: p.probs}
	findRun(j, b, i, runOf(w, b, i), gk)
	if n = len(w.run); n == 0 {
		return 0, nil
	}
	g := j.groupOf(gk, w.models)
	from := g.b.N
	g.addRun(&w.memory, b, i)
	leaveRun(&w.memory, gk.k)
	j.joined += int64(n)
	j.met += int64(n)
	w.n.predictions -= n
	if j.cfg.Remember == 0 {
		return n, nil
	}
	return n, store.AddMoved(w.joined(), &store.Arrivals[arrowio.ID]{IDs: g.b.IDs[from:], TS: g.b.TS[from:],
		Key: store.Key(w.models[gk.model])})
}

// findRun replaces, in the index, the run's predictions by joined rows, if they are to be remembered.
func findRun(j *Operator, b *arrowio.Batch, i, end int, gk groupKey) {
	w := &j.w
	w.run = w.run[:0]
	by, keep := w.joined().NextRef(), j.cfg.Remember > 0
	for at := w.at(i); i < end; i, at = i+1, at+1 {
		ref := w.refs[at]
		if store.IsJoined(ref) {
			return
		}
		e := int32(ref >> 1)
		p := &w.entries[e]
		switch {
		case p.slot < 0 || p.chain >= 0 || p.model != gk.model || int(p.k) != gk.k || p.probs != gk.probs || p.d > 0,
			stays(w, b, i), p.id != b.IDs[i], uint32(b.Label[i]) >= uint32(p.k), !j.cfg.inTime(p.ts, b.TS[i]),
			keep && !w.index.ReplaceAt(w.hashes[at], w.places[at], ref, by),
			!keep && !w.index.RemoveAt(w.hashes[at], w.places[at], ref):
			return
		}
		by += 2
		w.run = append(w.run, e)
	}
}

// leaveRun frees the run's entries, with k scores each. It frees the last first, so that later rows get them in this
// order and what is together in memory stays together.
func leaveRun(w *memory, k int) {
	pool := w.pools.of(k)
	for _, e := range slices.Backward(w.run) {
		p := &w.entries[e]
		w.depart(p.at)
		pool.drop(p.slot)
		p.slot = -1
		w.free = append(w.free, e)
	}
	w.live -= len(w.run)
	w.bytes -= len(w.run) * (entryBytes + 4*k)
}

// addRun adds the run's entries to the batch, with the labels of a batch from i on.
func (g *builder) addRun(w *memory, labels *arrowio.Batch, i int) {
	b, n, rows, k := &g.b, g.b.N, len(w.run), g.key.k
	b.N += rows
	b.LabelTS = append(b.LabelTS, labels.TS[i:i+rows]...)
	b.Label = append(b.Label, labels.Label[i:i+rows]...)
	b.IDs, b.TS = longer(b.IDs, rows), longer(b.TS, rows)
	b.Served, b.Weight = longer(b.Served, rows), longer(b.Weight, rows)
	b.Scores = longer(b.Scores, rows*k)
	pool := w.pools.of(k)
	first, from := w.entries[w.run[0]].slot, 0
	for r, e := range w.run {
		p := &w.entries[e]
		b.IDs[n+r], b.TS[n+r], b.Served[n+r], b.Weight[n+r] = p.id, p.ts, p.served, p.weight
		if !pool.follows(p.slot, first, r-from) {
			copy(b.Scores[(n+from)*k:], pool.rows(first, r-from))
			first, from = p.slot, r
		}
	}
	copy(b.Scores[(n+from)*k:], pool.rows(first, rows-from))
	for c := range b.Slices {
		s := &b.Slices[c]
		s.Values = w.values
		s.Index = longer(s.Index, rows)
		for r, e := range w.run {
			s.Index[n+r] = w.slices[int(e)*w.columns+c]
		}
	}
}

// longer returns s with n more elements.
func longer[T any](s []T, n int) []T { return slices.Grow(s, n)[:len(s)+n] }
