package oracle_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// world is a run of a plan without a broker. All that happens is drawn from the seed; the fits of a model task are
// waited for, as what a shard applies depends on when a calibrator comes.
type world struct {
	*wiring
	plan    *plan
	r       *rand.Rand
	in      [][2][]record // by shard and input
	shards  []*shard
	drained []bool
	rested  []bool // has been idle in the middle
	saved   [][]byte
	models  []*model
	kept    [][]byte    // checkpoints of the models
	panes   [][]record  // by partition
	outputs [][]message // of the models, by partition
	letters [][]message // of the shards: dead letters and calibrated rows
	log     []message   // the panes as the shards wrote them
}

func runWorld(t testing.TB, p *plan) *world {
	t.Helper()
	w := &world{
		wiring:  newWiring(t, p.yaml, p.shards, p.partitions),
		plan:    p,
		r:       rand.New(rand.NewPCG(p.seed, 2)),
		in:      make([][2][]record, p.shards),
		drained: make([]bool, p.shards),
		rested:  make([]bool, p.shards),
		saved:   make([][]byte, p.shards),
		kept:    make([][]byte, p.partitions),
		panes:   make([][]record, p.partitions),
		outputs: make([][]message, p.partitions),
		letters: make([][]message, p.shards),
	}
	w.fill()
	for i := range p.shards {
		w.shards = append(w.shards, w.newShard(i))
	}
	for i := range p.partitions {
		w.models = append(w.models, w.newModel(i))
	}
	if p.heads {
		w.addHeads()
	}
	w.run()
	return w
}

// fill makes the records of every shard.
func (w *world) fill() {
	p := w.plan
	rows := p.stream.draw(p.seed)
	labels := labelled(rows)
	if p.displaced > 0 {
		rows, labels = displace(rows, p.displaced, w.r), displace(labels, p.displaced, w.r)
	}
	if p.spoiled {
		rows, labels = spoil(rows, w.r), spoil(labels, w.r)
	}
	split := func(rows []row) [][]row {
		out := make([][]row, p.shards)
		for _, r := range rows {
			i := partitionOf(r.id, p.shards)
			out[i] = append(out[i], r)
		}
		return out
	}
	for i, part := range split(rows) {
		for _, b := range batches(part, p.batch) {
			w.add(i, record{input: 0, time: b[len(b)-1].sent, value: w.encodePredictions(b, p.inline)})
		}
	}
	if p.inline {
		return
	}
	for i, part := range split(labels) {
		for _, b := range batches(part, p.batch) {
			w.add(i, record{input: 1, time: b[len(b)-1].labelTS, value: w.encodeLabels(b)})
		}
	}
}

// add appends a record to an input of a shard, and before it, at times, one that is no batch.
func (w *world) add(shard int, r record) {
	lane := &w.in[shard][r.input]
	put := func(r record) {
		r.offset = len(*lane)
		*lane = append(*lane, r)
	}
	if w.plan.spoiled && w.r.IntN(40) == 0 {
		put(record{input: r.input, time: r.time, key: "k", value: []byte("no Arrow message")})
	}
	if w.plan.spoiled && w.r.IntN(60) == 0 {
		put(watermarkRecord(r.input, r.time-60*second))
	}
	put(r)
}

// addHeads has the shards run two heads: one that is better than overconfident scores, and one that is not.
func (w *world) addHeads() {
	m := w.plan.stream.models[0]
	w.putHead(m.name, m.versions[0], 1, start+40*second, head{k: m.k, scale: 1})
	w.putHead(m.name, m.versions[0], 2, start+60*second, head{k: m.k, turn: w.r.IntN(2), scale: .5})
}

// run reads every input to its end, then lets all fall idle.
func (w *world) run() {
	steps := 0
	for i := range w.in {
		steps += len(w.in[i][0]) + len(w.in[i][1])
	}
	for n := 1; w.step(); n++ {
		if w.plan.crashes > 0 {
			w.maybeCrash(min(.05, float64(w.plan.crashes)/float64(steps)))
		}
		if r := w.plan.restarts; r > 0 && n%max(2, steps/(r+1)) == 0 {
			w.restart()
		}
		if every := max(2, steps/20); w.plan.orders && n%every == every/2 {
			w.order(n / every)
		}
	}
	for i := range w.shards {
		w.saveShard(i)
		w.shards[i].close()
	}
	for p := range w.models {
		w.readPanes(p, len(w.panes[p]))
		w.saveModel(p)
	}
}

// step gives one record to one shard, and some panes to the models; false when every shard is idle for good.
func (w *world) step() bool {
	var open []int
	for i := range w.shards {
		if !w.drained[i] {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return false
	}
	i := open[w.r.IntN(len(open))]
	left := [2]int{len(w.in[i][0]) - w.shards[i].next(0), 0}
	if w.inputs() == 2 {
		left[1] = len(w.in[i][1]) - w.shards[i].next(1)
	}
	half := (len(w.in[i][0]) + len(w.in[i][1])) / 2
	switch {
	case left[0]+left[1] == 0:
		w.rest(i)
		w.drained[i] = true
	case w.plan.idle && !w.rested[i] && left[0]+left[1] < half:
		w.rest(i)
	default:
		in := w.choose(left)
		w.shards[i].take(w.in[i][in][len(w.in[i][in])-left[in]])
	}
	if w.plan.crashes == 0 {
		w.writeShard(i)
	}
	for p := range w.models {
		w.readPanes(p, w.r.IntN(4))
	}
	return true
}

// rest tells a shard that its inputs are exhausted.
func (w *world) rest(i int) {
	w.rested[i] = true
	for in := range w.inputs() {
		w.shards[i].take(record{input: in, idle: true})
	}
}

func (w *world) choose(left [2]int) int {
	switch first := w.r.Float64() < w.plan.bias; {
	case left[1] == 0, first && left[0] > 0:
		return 0
	default:
		return 1
	}
}

// writeShard writes what a shard has put out, its dead letters before the panes.
func (w *world) writeShard(i int) {
	before, panes := w.shards[i].out()
	w.letters[i] = append(w.letters[i], before...)
	w.writePanes(panes)
	w.shards[i].written()
}

func (w *world) writePanes(panes []message) {
	for _, m := range panes {
		w.log = append(w.log, m)
		w.panes[m.partition] = append(w.panes[m.partition], record{input: 2, offset: len(w.panes[m.partition]),
			key: m.key, value: m.value})
	}
}

// readPanes gives a model task up to n records of the log of panes.
func (w *world) readPanes(p, n int) {
	m := w.models[p]
	for next := m.next(); n > 0 && next < len(w.panes[p]); n-- {
		m.take(w.panes[p][next])
		m.settle()
		next++
	}
	if w.plan.crashes == 0 {
		w.writeModel(p)
	}
}

// writeModel writes the outputs of a model task; calibrators come into force with that.
func (w *world) writeModel(p int) {
	ms := w.models[p].out()
	for _, m := range ms {
		w.show(m)
	}
	w.outputs[p] = append(w.outputs[p], ms...)
}

// saveShard takes a checkpoint, between its dead letters and its panes, as pipeline.Run does.
func (w *world) saveShard(i int) {
	before, _ := w.shards[i].out()
	w.letters[i] = append(w.letters[i], before...)
	w.saved[i] = w.shards[i].save()
	if w.plan.crashes > 0 && w.r.IntN(4) == 0 { // before the panes are written
		w.restoreShard(i)
		return
	}
	_, panes := w.shards[i].out()
	w.writePanes(panes)
	w.shards[i].written()
}

func (w *world) restoreShard(i int) {
	w.shards[i].close()
	w.shards[i] = w.newShard(i)
	if w.saved[i] != nil {
		w.shards[i].restore(w.saved[i])
		if !bytes.Equal(w.shards[i].save(), w.saved[i]) {
			w.t.Errorf("seed %d: shard %d restored encodes to another checkpoint", w.plan.seed, i)
		}
		_, panes := w.shards[i].out()
		w.writePanes(panes)
		w.shards[i].written()
	}
	w.drained[i] = false
}

func (w *world) saveModel(p int) {
	w.writeModel(p)
	w.kept[p] = w.models[p].save()
}

func (w *world) restoreModel(p int) {
	w.models[p] = w.newModel(p)
	if w.kept[p] != nil {
		w.models[p].restore(w.kept[p])
	}
}

// maybeCrash saves tasks, and lets some lose what came since their checkpoint.
func (w *world) maybeCrash(crash float64) {
	save := 4 * crash
	chance := func(p float64) bool { return w.r.Float64() < p }
	for i := range w.shards {
		if chance(save) {
			w.saveShard(i)
		}
		if chance(crash) {
			w.restoreShard(i)
		}
	}
	for p := range w.models {
		if chance(save) {
			w.saveModel(p)
		}
		if chance(crash) {
			w.restoreModel(p)
		}
	}
}

// restart ends all tasks in order, and begins them anew.
func (w *world) restart() {
	for i := range w.shards {
		drained := w.drained[i]
		w.saveShard(i)
		w.restoreShard(i)
		w.drained[i] = drained
	}
	for p := range w.models {
		w.saveModel(p)
		w.restoreModel(p)
	}
}

// order puts what a person decides into the log of panes.
func (w *world) order(n int) {
	m := w.plan.stream.models[0]
	orders := []order{{action: "publish", version: "v1", temperature: 1.7}, {action: "pin"},
		{action: "rollback", version: "v1"}, {action: "unpin", version: "v1"},
		{action: "publish", version: "none", temperature: 2}, {action: "publish", version: "v1",
			temperature: .6}, {action: "unpin"}}
	o := orders[n%len(orders)]
	o.number, o.model = byte(n+1), m.name
	p := partitionOf(m.name, w.partitions)
	w.panes[p] = append(w.panes[p], record{input: 2, offset: len(w.panes[p]), key: m.name, value: w.encodeOrder(o)})
}
