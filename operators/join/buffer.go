package join

import (
	"log/slog"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join/store"
)

// entry is a waiting prediction (label < 0) or a waiting label. It has no pointers and fills one cache line.
type entry struct {
	id             arrowio.ID
	ts             int64 // the prediction's, or the label's
	label          int32
	model          int32 // index in names.models; -1 = a label that names no model
	k, d           int32 // numbers of scores, and of features kept with them
	slot           int32 // in the pool for its length
	served, weight float32
	chain          int32  // next entry of the same id
	at             uint32 // place in arrivals or, for a copy of a row on disk, in disk.rows
	named          bool
	used           bool // a label that has joined and stays for further predictions of its id
	probs          bool
	onDisk         bool // a copy of a row on disk, until the current row is done
}

// buffer holds the waiting rows of the join: a bounded queue of entries in order of arrival, found by id. The latest
// are in memory, older ones on disk; results must not depend on which. It also remembers rows that have joined.
type buffer struct {
	cfg     *Options
	log     *slog.Logger
	n       tally // of both tiers
	dropped int64 // slice values whose column is no longer configured, in the restored state
	// sharedAt is the time of the newest prediction whose id had one of another model version, noShared = none. Within
	// the wait from it a label that may be for both stays for those that are read after it.
	sharedAt int64
	memory
	remembered
	disk
}

// memory holds the latest entries.
type memory struct {
	cfg     *Options
	entries []entry
	free    []int32
	index   *store.Index // the newest entry of each id, by refOf; and what has joined
	arrivals
	live  int // entries in memory
	bytes int // of them, and of their scores
	scoreRows
	sliceTable
	versions
	ahead
}

// versions has the model versions that entries refer to by number.
type versions struct {
	models  []arrowio.ModelKey
	modelIx map[arrowio.ModelKey]int32
	model1  int32 // of models, the one used last
}

// noShared is no buffer.sharedAt.
const noShared = math.MinInt64

// tally counts entries by kind.
type tally struct {
	predictions, labels int
	served              int // labels that have met a prediction
}

// of returns the counter of an entry's kind.
func (t *tally) of(label, used bool) *int {
	switch {
	case label && used:
		return &t.served
	case label:
		return &t.labels
	}
	return &t.predictions
}

// bounded returns the number of entries that Options.MaxRows bounds.
func (t *tally) bounded() int { return t.predictions + t.labels + t.served }

// entryBytes is about the memory of an entry without its scores: itself, and its place in the index.
const entryBytes = 120

func (w *buffer) reset(cfg *Options) {
	index := store.NewIndex()
	*w = buffer{cfg: cfg, log: w.log, sharedAt: noShared,
		remembered: remembered{cfg: cfg, shared: index}, disk: disk{cfg: cfg, recalled: -1},
		memory: memory{
			cfg: cfg, index: index,
			scoreRows:  scoreRows{featureBytes: cfg.FeatureBytes, pools: pools{by: map[int]*pool{}}},
			sliceTable: sliceTable{names: cfg.Slices, columns: len(cfg.Slices), valueIx: map[string]int32{}},
			versions:   versions{modelIx: map[arrowio.ModelKey]int32{}},
		}}
}

// refOf returns the number of an entry in the index; joined rows have odd numbers.
func refOf(e int32) uint32 { return uint32(e) << 1 }

// newestOf returns the newest entry of an id in memory, -1 if there is none.
func (w *memory) newestOf(id *arrowio.ID) int32 {
	for _, ref := range w.index.Lookup(w.index.Hash((*store.ID)(id))) {
		if !store.IsJoined(ref) && w.entries[ref>>1].id == *id {
			return int32(ref >> 1)
		}
	}
	return -1
}

// first returns the newest entry of an id, -1 if there is none. Rows on disk are found after recall.
func (w *buffer) first(id *arrowio.ID) int32 {
	if e := w.newestOf(id); e >= 0 {
		return e
	}
	return w.recalled
}

// after returns the next older entry of the same id.
func (w *buffer) after(e int32) int32 {
	p := &w.entries[e]
	if p.chain < 0 && !p.onDisk {
		return w.recalled
	}
	return p.chain
}

// hasPrediction reports whether the id has a prediction of the key, waiting or joined. If not, it reports whether it
// has one of another key, and how many entries and joined rows.
func (w *buffer) hasPrediction(id *arrowio.ID, key *arrowio.ModelKey) (known, rival bool, others int) {
	first := w.recalled
	for _, ref := range w.index.Lookup(w.index.Hash((*store.ID)(id))) {
		if !store.IsJoined(ref) {
			if e := int32(ref >> 1); w.entries[e].id == *id {
				first = e
			}
			continue
		}
		if m, ok := w.met.Match(ref, (*store.ID)(id)); ok {
			if arrowio.ModelKey(m.Key) == *key {
				return true, false, 0
			}
			rival = true
			others++
		}
	}
	for e := first; e >= 0; e = w.after(e) {
		if p := &w.entries[e]; p.label < 0 {
			if w.models[p.model] == *key {
				return true, false, 0
			}
			rival = true
		}
		others++
	}
	return false, rival, others
}

// place returns an unused entry.
func (w *memory) place(id arrowio.ID) int32 {
	var e int32
	if n := len(w.free); n > 0 {
		e, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.entries = append(w.entries, entry{})
		e = int32(len(w.entries) - 1)
		w.slices = append(w.slices, make([]int32, w.columns)...)
	}
	w.entries[e] = entry{id: id, label: -1, model: -1, slot: -1, chain: -1}
	return e
}

// add adds an empty entry for id, first in its chain and newest in arrival; setPrediction or setLabel follows. alone
// says that no other entry in memory has the id.
func (w *memory) add(id arrowio.ID, alone bool) int32 {
	e := w.place(id)
	w.link(e, alone)
	w.live++
	w.bytes += entryBytes
	return e
}

// link makes an entry the first in its id's chain and the newest in arrival.
func (w *memory) link(e int32, alone bool) {
	p := &w.entries[e]
	h := w.index.Hash((*store.ID)(&p.id))
	head := int32(-1)
	if !alone {
		head = w.newestOf(&p.id)
	}
	if p.chain = head; head >= 0 {
		w.index.Replace(h, refOf(head), refOf(e))
	} else {
		w.index.Add(h, refOf(e))
	}
	arrive(w, e)
}

// addFirst is add for an id, with hash h, that no row in the index can have. If one may have it, it does nothing and
// returns -1.
func addFirst(w *memory, id arrowio.ID, h uint32) int32 {
	e := w.place(id)
	if !w.index.AddNew(h, refOf(e)) {
		w.free = append(w.free, e)
		return -1
	}
	arrive(w, e)
	w.live++
	w.bytes += entryBytes
	return e
}

// remove removes an entry, in memory or on disk.
func (w *buffer) remove(e int32) {
	p := &w.entries[e]
	*w.n.of(p.label >= 0, p.used)--
	if p.onDisk {
		w.removeRecalled(e)
		return
	}
	w.unlink(e)
}

// unlink removes an entry from memory.
func (w *memory) unlink(e int32) {
	p := &w.entries[e]
	h := w.index.Hash((*store.ID)(&p.id))
	switch {
	case p.chain < 0 && w.index.Remove(h, refOf(e)):
	case p.chain >= 0 && w.index.Replace(h, refOf(e), refOf(p.chain)):
	default:
		before := w.newestOf(&p.id)
		for w.entries[before].chain != e {
			before = w.entries[before].chain
		}
		w.entries[before].chain = p.chain
	}
	w.leave(e)
}

// leave removes an entry from the order of arrival and frees it.
func (w *memory) leave(e int32) {
	p := &w.entries[e]
	w.depart(p.at)
	w.dropScores(p)
	w.free = append(w.free, e)
	w.live--
	w.bytes -= entryBytes
}

func (w *memory) dropScores(p *entry) {
	if p.slot < 0 {
		return
	}
	n := w.words(p)
	w.pools.of(n).drop(p.slot)
	p.slot = -1
	if !p.onDisk {
		w.bytes -= 4 * n
	}
}

// serve notes that a label has met a prediction.
func (w *buffer) serve(e int32) {
	p := &w.entries[e]
	if p.used {
		return
	}
	p.used = true
	w.n.labels--
	w.n.served++
	if p.onDisk {
		w.store.SetState(w.rows[p.at], stateServed)
	}
}

func (w *versions) model(key arrowio.ModelKey) int32 {
	if i := w.model1; int(i) < len(w.models) && w.models[i] == key {
		return i
	}
	i, ok := w.modelIx[key]
	if !ok {
		i = int32(len(w.models))
		w.models = append(w.models, key)
		w.modelIx[key] = i
	}
	w.model1 = i
	return i
}

func (w *buffer) setPrediction(e int32, b *arrowio.Batch, i int, key *arrowio.ModelKey) {
	p := &w.entries[e]
	p.ts, p.model, p.probs = b.TS[i], w.model(*key), b.Probs
	p.served, p.weight = float32(math.NaN()), 1
	if b.Served != nil {
		p.served = b.Served[i]
	}
	if b.Weight != nil {
		p.weight = b.Weight[i]
	}
	copy(w.scores(e, b.K, w.featuresOf(b, i)), b.Scores[i*b.K:(i+1)*b.K])
	w.setFeatures(p, b, i)
	w.takeSlices(e, b, i)
	w.n.predictions++
}

func (w *buffer) setLabel(e int32, ts int64, label int32, key arrowio.ModelKey, named bool) {
	p := &w.entries[e]
	p.ts, p.label, p.named = ts, label, named
	if named {
		p.model = w.model(key)
	}
	w.n.labels++
}

// exact reports whether a label names one model version.
func (w *versions) exact(label *entry) bool {
	return label.named && w.models[label.model].Version != ""
}

// scores gives an entry a row of k scores, and room for d features.
func (w *memory) scores(e int32, k, d int) []float32 {
	p := &w.entries[e]
	p.k, p.d = int32(k), int32(d)
	n := w.words(p)
	p.slot = w.pools.of(n).take()
	if !p.onDisk {
		w.bytes += 4 * n
	}
	return w.row(p)
}

// compact forgets unused names once there are many: slice values may be unlimited over time (tenants, sessions).
// Indices change. It reports whether it did anything.
func (w *memory) compact() bool {
	const few = 1024
	if len(w.models) <= few+2*w.live && len(w.models)+len(w.values) <= few+4*w.live*(1+w.columns) {
		return false
	}
	models := w.models
	w.models, w.modelIx = nil, map[arrowio.ModelKey]int32{}
	values := w.forgetValues()
	for e := range w.inOrder {
		p := &w.entries[e]
		if p.model >= 0 {
			p.model = w.model(models[p.model])
		}
		if p.label >= 0 {
			continue
		}
		w.renumber(e, values)
	}
	return true
}
