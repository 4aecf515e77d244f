package model

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// grown is the deployment of a test that gets more shards while it runs. Topics hold what producers send, who learn of
// new partitions one after the other; the first shards read them, later ones what is split of them.
type grown struct {
	t      *testing.T
	setup  setup
	r      *rand.Rand
	topics [2][][]pipeline.Record // by input and partition
	of     int
	split  bool
	lanes  [2][][]pipeline.Record // by input and shard, where split
	relays []*relay
	fences []pipeline.Fence
	shards []*pipeline.Shard
	saved  []pipeline.Checkpoint
	files  map[string][]byte
	panes  []pipeline.Record
	model  *Task
	kept   []byte // checkpoint of the model task
	out    []pipeline.Message
}

// relay is one partition of a topic that is split.
type relay struct {
	in, partition int
	next, done    int64 // to be read, and committed
	convert       *repartition.Converter
}

const growMost = 16 // partitions

var growTopics = [2]string{"logits", "labels"}

func newGrown(t *testing.T, s setup, seed uint64) *grown {
	g := &grown{t: t, setup: s, r: rand.New(rand.NewPCG(seed, 9)), of: 4, files: map[string][]byte{}, model: s.task(),
		saved: make([]pipeline.Checkpoint, 4)}
	for i := range 4 {
		g.shards = append(g.shards, s.shard(i, 4))
	}
	t.Cleanup(func() {
		for _, s := range g.shards {
			g.must(s.Close())
		}
	})
	return g
}

func (g *grown) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// send appends the predictions and labels of an interval to the topics; partitions says how many there are for a row's
// producer at a time.
func (g *grown) send(rows []batchtest.Row, from, to int64, partitions func(producer int, ts int64) int) {
	for in := range g.topics {
		parts := make([][]batchtest.Row, growMost)
		at := func(row *batchtest.Row) int64 { return row.TS }
		if in == 1 {
			at = func(row *batchtest.Row) int64 { return row.LabelTS }
			rows = batchtest.ByLabelTime(rows)
		}
		for i := range rows {
			ts := at(&rows[i])
			if ts < from || ts >= to {
				continue
			}
			producer := murmur.PartitionOf([]byte("producer of "+rows[i].ID), 3)
			p := murmur.PartitionOf([]byte(rows[i].ID), partitions(producer, ts))
			parts[p] = append(parts[p], rows[i])
		}
		for p, part := range parts {
			records := batchtest.Predictions(g.t, part, 7)
			if in == 1 {
				records = batchtest.Labels(g.t, part, 7)
			}
			for p >= len(g.topics[in]) && len(records) > 0 {
				g.topics[in] = append(g.topics[in], nil)
			}
			for _, r := range records {
				r.Topic, r.Partition, r.Offset = growTopics[in], int32(p), int64(len(g.topics[in][p]))
				g.topics[in][p] = append(g.topics[in][p], r)
			}
		}
	}
}

// lane is what a shard reads of an input.
func (g *grown) lane(in, shard int) []pipeline.Record {
	if g.split {
		return g.lanes[in][shard]
	}
	return g.topics[in][shard]
}

// step lets a shard or a relay read, and crash or save; false where there is nothing to read.
func (g *grown) step() bool {
	n := len(g.shards) + len(g.relays)
	for _, i := range g.r.Perm(n) {
		if i < len(g.shards) && g.take(i) || i >= len(g.shards) && g.relay(g.relays[i-len(g.shards)]) {
			g.mishap()
			return true
		}
	}
	return false
}

func (g *grown) take(i int) bool {
	s := g.shards[i]
	for _, in := range g.r.Perm(2) {
		lane, next := g.lane(in, i), int(max(s.Next()[pipeline.Input(in)], 0))
		if next < len(lane) {
			g.must(s.Take(context.Background(), lane[next]))
			return true
		}
	}
	return false
}

// relay splits some records of a partition.
func (g *grown) relay(y *relay) bool {
	log := g.topics[y.in][y.partition]
	if int(max(y.next, 0)) >= len(log) {
		return false
	}
	r := log[max(y.next, 0)]
	g.write(y.convert.Take(r))
	y.next = r.Offset + 1
	return true
}

func (g *grown) write(ms []pipeline.Message) {
	for _, m := range ms {
		in := 0
		if m.Stream == pipeline.StreamLabels {
			in = 1
		}
		lane := &g.lanes[in][m.Partition]
		*lane = append(*lane, pipeline.Record{Input: pipeline.Input(in), Topic: growTopics[in] + "-by-id",
			Partition: m.Partition, Offset: int64(len(*lane)), Value: m.Value, Headers: m.Headers, Time: m.Time})
	}
}

// begin starts a relay from where it has committed.
func (g *grown) begin(y *relay) {
	counts := pipeline.NewCounts()
	y.next = y.done
	cfg := repartition.Config{Input: pipeline.Input(y.in), Topic: growTopics[y.in], Partition: int32(y.partition),
		Of: int32(len(g.topics[y.in])), Targets: g.of,
		Fence: pipeline.FenceOf(g.fences, pipeline.Input(y.in), growTopics[y.in], y.partition)}
	y.convert = repartition.New(cfg, y.next, pipeline.NewOut(counts), counts)
	g.write(y.convert.Opening())
}

// mishap saves and crashes tasks.
func (g *grown) mishap() {
	i := g.r.IntN(len(g.shards))
	if g.r.IntN(20) == 0 {
		g.save(i, g.r.IntN(3) > 0)
	}
	if g.r.IntN(60) == 0 {
		g.restore(i)
	}
	if len(g.relays) > 0 {
		y := g.relays[g.r.IntN(len(g.relays))]
		switch g.r.IntN(40) {
		case 0, 1:
			y.done = y.next
		case 2:
			g.begin(y)
		}
	}
	g.read(g.r.IntN(4))
	if g.r.IntN(80) == 0 {
		g.model = g.setup.task()
		if g.kept != nil {
			g.must(pipeline.RestoreCheckpoint(g.kept, g.model.Sections(), nil))
		}
	}
}

func (g *grown) read(n int) {
	for next := int(max(g.model.Next()[pipeline.Panes], 0)); n > 0 && next < len(g.panes); n, next = n-1, next+1 {
		g.must(g.model.Take(context.Background(), g.panes[next]))
	}
	if g.r.IntN(30) == 0 {
		g.keep()
	}
}

func (g *grown) keep() {
	g.out = append(g.out, g.model.Decided().Before...)
	g.model.Written()
	c, err := pipeline.EncodeCheckpoint(g.model.Sections())
	g.must(err)
	g.kept = c.Data
}

// save takes a checkpoint; the process may end before the panes are written.
func (g *grown) save(i int, writes bool) {
	g.saved[i] = g.encode(g.shards[i])
	if writes {
		g.panesOf(g.shards[i])
	} else {
		g.restore(i)
	}
}

func (g *grown) encode(s *pipeline.Shard) pipeline.Checkpoint {
	c, err := pipeline.EncodeCheckpoint(s.Sections())
	g.must(err)
	for _, f := range c.Files {
		if g.files[f.Name] == nil {
			g.files[f.Name], err = os.ReadFile(f.Path)
			g.must(err)
		}
	}
	return c
}

func (g *grown) panesOf(s *pipeline.Shard) {
	for _, m := range s.Decided().After {
		g.panes = append(g.panes, pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: int64(len(g.panes)),
			Key: m.Key, Value: m.Value})
	}
	s.Written()
}

func (g *grown) fetch(name, path string) error { return os.WriteFile(path, g.files[name], 0o600) }

// restore starts a shard from its checkpoint.
func (g *grown) restore(i int) {
	s := g.setup.shard(i, g.of)
	if g.saved[i].Data != nil {
		g.must(pipeline.RestoreCheckpoint(g.saved[i].Data, s.Sections(), g.fetch))
		g.must(s.Usable())
	}
	g.panesOf(s)
	g.must(g.shards[i].Close())
	g.shards[i] = s
}

// grow ends all shards and goes on with more of them, with crashes on the way.
func (g *grown) grow(of int) {
	var sealed, left []pipeline.Stored
	for i, s := range g.shards {
		if g.r.IntN(2) == 0 { // it ends, and another process has it end from its checkpoint
			g.restore(i)
			s = g.shards[i]
		}
		s.Seal()
		g.saved[i] = g.encode(s)
		if g.r.IntN(2) == 0 {
			g.panesOf(s)
		}
		sealed = append(sealed, g.stored(g.saved[i].Data))
		c, err := pipeline.Amend(sealed[i], g.setup.shard(i, g.of).Moving(), g.t.TempDir())
		g.must(err)
		left = append(left, g.stored(c.Data))
	}
	old := g.shards
	build := func(id int) (*pipeline.Shard, error) { return g.setup.shard(id, len(old)), nil }
	var grown []*pipeline.Shard
	for q := range of {
		growth := pipeline.Growth{Sealed: left, Build: build}
		if q < len(old) {
			growth.Own = &sealed[q]
		}
		s := g.setup.shard(q, of)
		for g.must(s.Grow(growth)); g.r.IntN(3) == 0; g.must(s.Grow(growth)) { // a crash before its checkpoint
			g.must(s.Close())
			s = g.setup.shard(q, of)
		}
		grown = append(grown, s)
	}
	g.fence(old, of)
	for _, s := range old {
		g.must(s.Close())
	}
	g.shards, g.saved, g.of, g.split = grown, make([]pipeline.Checkpoint, of), of, true
	for q, s := range g.shards {
		g.saved[q] = g.encode(s)
		if g.r.IntN(2) == 0 {
			g.panesOf(s)
		} else {
			g.restore(q)
		}
	}
}

// fence notes what the old shards had taken, and begins to split the topics anew.
func (g *grown) fence(old []*pipeline.Shard, of int) {
	var fences []pipeline.Fence
	for in, topic := range growTopics {
		if g.split {
			fences = append(fences, pipeline.SplitFences(old, pipeline.Input(in), topic, g.fences, false)...)
			continue
		}
		for _, s := range old {
			fences = append(fences, s.DirectFence(pipeline.Input(in), topic))
		}
	}
	g.fences = fences
	for in := range g.lanes {
		g.lanes[in] = make([][]pipeline.Record, of)
	}
	g.of, g.relays = of, nil
}

// follow begins to split the partitions that there are.
func (g *grown) follow() {
	for in := range g.topics {
		for p := range g.topics[in] {
			if slices.ContainsFunc(g.relays, func(y *relay) bool { return y.in == in && y.partition == p }) {
				continue
			}
			y := &relay{in: in, partition: p, done: -1}
			if f := pipeline.FenceOf(g.fences, pipeline.Input(in), growTopics[in], p); f != nil {
				y.done = f.From
			}
			g.relays = append(g.relays, y)
			g.begin(y)
		}
	}
}

func (g *grown) stored(data []byte) pipeline.Stored {
	return pipeline.Stored{Read: func() ([]byte, error) { return data, nil }, Fetch: g.fetch}
}

// finish lets all inputs fall idle.
func (g *grown) finish() {
	for range 2 {
		for g.step() {
		}
		for _, y := range g.relays {
			g.write(y.convert.Take(pipeline.Record{Idle: true}))
		}
	}
	for i, s := range g.shards {
		for g.take(i) {
		}
		for in := range 2 {
			g.must(s.Take(context.Background(), pipeline.Record{Input: pipeline.Input(in), Idle: true}))
		}
		g.save(i, true)
	}
	g.read(len(g.panes))
	g.must(g.model.Settle(context.Background()))
	g.keep()
}

// TestShardsBecomeMore has 4, 12 and 16 shards on one stream, with crashes at every step, and compares all that comes
// of it with a run of 4 shards.
func TestShardsBecomeMore(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	s := defaultSetup()
	s.slices = []string{"region"}
	s.join.Wait *= 10
	s.join.Dir, s.join.MemoryBytes, s.join.Remember, s.join.SegmentBytes = t.TempDir(), 4000, 1000, 2000
	rows := batchtest.Rows(1, batchtest.Options{N: 1500, MaxLag: 60 * second, Unlabelled: .1, Sharpness: 2, Regions: 2,
		Versions: []string{"a", "b"}, Weights: true, Served: true})
	rows = append(rows, batchtest.Rows(2, batchtest.Options{N: 500, MaxLag: 60 * second, Model: "other", Regions: 2,
		Step: 3 * second / 10})...)
	slices.SortStableFunc(rows, func(a, b batchtest.Row) int { return cmp.Compare(a.TS, b.TS) })
	first, last := rows[0].TS, rows[len(rows)-1].TS
	at := [4]int64{first, first + (last-first)/3, first + (last-first)*2/3, last + 3600*second}
	want := newWorld(t, s, worldtest.Stream(t, rows, 4, 16), 1).run(worldtest.AnyOrder)
	if len(worldtest.Firsts(want.Outputs)) < 5 || want.Counts()["late"] != 0 {
		t.Fatalf("a run of 4 shards is of no use to compare with: %v", want.Counts())
	}
	numbers := [3]int{4, 12, growMost}
	for seed := uint64(1); seed <= 3; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g := newGrown(t, s, seed)
			for phase, n := range numbers {
				if phase > 0 {
					for range g.r.IntN([3]int{1: 150, 2: 4000}[phase]) {
						g.step()
					}
					g.grow(n)
				}
				g.send(rows, at[phase], at[phase+1], func(producer int, ts int64) int {
					if phase > 0 && ts < at[phase]+int64(producer)*20*second {
						return numbers[phase-1]
					}
					return n
				})
				if phase > 0 {
					g.follow()
				}
			}
			g.finish()
			g.compare(want)
		})
	}
}

func (g *grown) compare(want *world) {
	sum := map[string]int64{}
	for i, s := range g.shards {
		all := s.Counts.All()
		if n, detail := pipeline.Unaccounted(all); n != 0 {
			g.t.Errorf("shard %d: %s", i, detail)
		}
		for name, n := range all {
			sum[name] += n
		}
	}
	wanted := want.Counts()
	for _, name := range []string{pipeline.CountPredictions, pipeline.CountLabels, pipeline.CountJoined,
		pipeline.CountLate, pipeline.CountDuplicates, pipeline.CountOrphans} {
		if sum[name] != wanted[name] {
			g.t.Errorf("%s: %d, want %d", name, sum[name], wanted[name])
		}
	}
	if sum[pipeline.CountMoved] != 0 || sum[pipeline.CountMovedLabels] != 0 {
		g.t.Errorf("moved: %v", sum)
	}
	h, err := g.model.Hash()
	g.must(err)
	wantHash, err := want.Model.Hash()
	g.must(err)
	for name := range wantHash {
		if h[name] != wantHash[name] {
			g.t.Errorf("state hash of %s is %s, want %s", name, h[name], wantHash[name])
		}
	}
	worldtest.CompareOutputs(g.t, worldtest.Firsts(g.out), worldtest.Firsts(want.Outputs))
}
