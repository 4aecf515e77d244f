package pair

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

const second = batchtest.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// event is a request or a response of a row, and when it arrives.
type event struct {
	batchtest.Row
	side    arrowio.Side
	arrives int64
}

// apart makes requests and responses of rows that arrive in any order within four seconds, and the rows that should
// come of them. Some requests never come, and some responses; some requests are answered by a shadow, too.
func apart(seed uint64, rows []batchtest.Row) (events []event, whole []batchtest.Row) {
	r := rand.New(rand.NewPCG(seed, 7))
	for _, row := range rows {
		request, response := row, row
		request.TS -= second / 20
		fate := r.Float64()
		if fate < .05 {
			row.Region, row.Weight = "", float32(math.NaN())
		} else {
			events = append(events, event{request, arrowio.Request, request.TS + r.Int64N(4*second)})
		}
		if fate > .95 {
			continue
		}
		for _, version := range []string{row.Version, "shadow"}[:1+min(1, r.IntN(5)/4)] {
			response.Version, row.Version = version, version
			events = append(events, event{response, arrowio.Response, response.TS + r.Int64N(4*second)})
			whole = append(whole, row)
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.arrives, b.arrives) })
	return events, whole
}

func text(values ...string) *arrowio.TextColumn {
	t := &arrowio.TextColumn{}
	for _, v := range values {
		t.Data = append(t.Data, v...)
		t.Ends = append(t.Ends, int32(len(t.Data)))
	}
	return t
}

func (e *event) rows() *arrowio.Rows {
	rows := &arrowio.Rows{N: 1, Side: e.side, Model: e.Model, IDs: text(e.ID), TS: []int64{e.TS}}
	if e.side == arrowio.Request {
		rows.Slices = []arrowio.NamedText{{Name: "region", Text: text(e.Region)}}
		rows.Weight = []float32{e.Weight}
	} else {
		rows.Version, rows.Form, rows.K, rows.Scores = e.Version, arrowio.ScoreForms[0], len(e.Scores), e.Scores
	}
	return rows
}

func message(t testing.TB, rows *arrowio.Rows) []byte {
	t.Helper()
	value, err := (&arrowio.RowsEncoder{}).Append(nil, rows)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func lanes(t testing.TB, events []event, whole []batchtest.Row) worldtest.Lanes {
	var out worldtest.Lanes
	for i, e := range events {
		out[0] = append(out[0], pipeline.Record{Input: pipeline.Logits, Topic: "logits", Offset: int64(i), Time: e.TS,
			Value: message(t, e.rows())})
	}
	out[1] = batchtest.Labels(t, batchtest.ByLabelTime(whole), 1)
	return out
}

// wholeLanes has a message for each row, because rows differ in their columns.
func wholeLanes(t testing.TB, rows []batchtest.Row) worldtest.Lanes {
	return worldtest.Lanes{batchtest.Predictions(t, rows, 1), batchtest.Labels(t, batchtest.ByLabelTime(rows), 1)}
}

type world = worldtest.World[*model.Task]

func newWorld(t testing.TB, in []worldtest.Lanes, seed uint64, cfg Config, tolerance int64) *world {
	columns := []string{"region"}
	shard := func(id, of int) *pipeline.Shard {
		counts := pipeline.NewCounts()
		h := pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts, Log: quiet}
		h.Outbox = pipeline.NewOutbox(id, of, 10*second, 1)
		w := pipeline.NewWatermark(2, 10*second)
		w.Tolerance = tolerance
		h.Clocks = w.Clocks
		stages := []pipeline.Stage{validate.New(validate.Config{NeedID: true}, h).Stage(),
			New(Options{Config: cfg, Slices: columns}, h).Stage(),
			join.New(join.Options{Config: join.Config{Wait: 120 * time.Second, MaxRows: 1 << 20}, Slices: columns},
				h).Stage(),
			apply.New(apply.Options{Config: apply.Config{Columns: "probs"}, Published: &apply.Published{}}, h).Stage(),
			stats.New(stats.Options{Acc: worldtest.Accumulators(), Pane: 10 * second, MaxKeys: 100},
				h).Stage()}
		return pipeline.NewShard(pipeline.ShardSpec{ID: id, Inputs: 2, PaneLength: 10 * second, Watermark: w,
			Decoder: arrowio.NewDecoder(arrowio.Options{Slices: columns}), Stages: stages, Host: h})
	}
	fits := refit.NewPool(1)
	task := func() *model.Task {
		return model.NewTask(model.Config{Pane: 10 * second, Acc: worldtest.Accumulators(), Bins: 15,
			ExtraBins: []int{10}, CDFNu: .1, Resamples: 20, SampleRows: 4096, SliceRows: 4096, FinalAfter: 120 * second,
			Windows: worldtest.Windows(), Rules: worldtest.Rules(), Refit: worldtest.Refits(), Fits: fits}, 0,
			pipeline.NewCounts(), quiet)
	}
	parts := worldtest.Parts[*model.Task]{Inputs: 2, Fits: fits, NewShard: shard, NewTask: task}
	return worldtest.New(t, parts, in, seed)
}

// TestPairsAreWholeRows: requests and responses in any order, with crashes at any record, give the numbers, decisions
// and state of the rows that they are parts of.
func TestPairsAreWholeRows(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rows := batchtest.Rows(seed, batchtest.Options{N: 900, Regions: 3, Weights: true, Sharpness: 2,
				Unlabelled: .1, Versions: []string{"v1", "v2"}[:1+seed%2]})
			events, whole := apart(seed, rows)
			tolerance := int64(seed%3) * 60 * second
			cfg := Config{Wait: time.Minute, MemoryBytes: 64 << 20}
			want := newWorld(t, []worldtest.Lanes{wholeLanes(t, whole)}, seed, cfg, tolerance)
			want.Run(worldtest.InTurn)
			got := newWorld(t, []worldtest.Lanes{lanes(t, events, whole)}, seed, cfg, tolerance)
			got.Save, got.Crash = .05, float64(seed%2)*.02
			got.Run(worldtest.InTurn)
			if got.Hash() != want.Hash() {
				t.Errorf("state hash %s, of whole rows %s", got.Hash(), want.Hash())
			}
			g, w := got.Counts(), want.Counts()
			if g[pipeline.CountExpired]+g[pipeline.CountWaiting] != w[pipeline.CountExpired]+w[pipeline.CountWaiting] {
				t.Errorf("counts %v, of whole rows %v", g, w)
			}
			for _, name := range []string{pipeline.CountPredictions, pipeline.CountJoined, pipeline.CountLabelled,
				pipeline.CountMet, pipeline.CountLate} {
				if g[name] != w[name] {
					t.Errorf("%s: %d, of whole rows %d", name, g[name], w[name])
				}
			}
			sides := map[arrowio.Side]map[string]int64{arrowio.Request: {}, arrowio.Response: {}}
			for _, e := range events {
				sides[e.side][e.ID]++
			}
			var pairs, unmet, alone int64
			for id := range sides[arrowio.Request] {
				pairs += min(1, sides[arrowio.Response][id])
				unmet += max(0, 1-sides[arrowio.Response][id])
			}
			for id, n := range sides[arrowio.Response] {
				if sides[arrowio.Request][id] == 0 {
					alone += n
				}
			}
			if g[pipeline.CountPaired] != pairs || g[pipeline.CountResponsesAlone+":waited"] != alone ||
				g[pipeline.CountRequestsUnmet+":waited"]+g[pipeline.CountWaitingRequests] != unmet || alone < 20 ||
				unmet < 20 {
				t.Errorf("%d pairs, %d requests unmet, %d responses alone: counts %v", pairs, unmet, alone, g)
			}
			if rows, detail := pipeline.Unaccounted(g); rows != 0 {
				t.Error(detail)
			}
			worldtest.CompareOutputs(t, worldtest.Firsts(got.Outputs), worldtest.Firsts(want.Outputs))
		})
	}
}

// half feeds an operator of its own.
type half struct {
	*Operator
	counts  *pipeline.Counts
	emitted []arrowio.Batch
}

func newHalf(cfg Config) *half {
	h := &half{counts: pipeline.NewCounts()}
	options := Options{Config: cfg, Slices: []string{"region"}, Shard: 3}
	h.Operator = New(options, pipeline.Host{Counts: h.counts, Log: quiet})
	return h
}

func (h *half) emit(b *arrowio.Batch) (pipeline.Rejects, error) {
	h.emitted = append(h.emitted, *b)
	return nil, nil
}

func (h *half) process(t testing.TB, e event) {
	t.Helper()
	h.read(t, e.rows())
}

func (h *half) read(t testing.TB, rows *arrowio.Rows) {
	t.Helper()
	d := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}})
	bs, err := d.Decode(message(t, rows), arrowio.Origin{}, arrowio.Predictions)
	if err == nil {
		_, err = h.Process(context.Background(), bs[0], h.emit)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func events(n int) (requests, responses []event) {
	for _, row := range batchtest.Rows(3, batchtest.Options{N: n, Regions: 2, Weights: true}) {
		requests, responses = append(requests, event{Row: row, side: arrowio.Request}),
			append(responses, event{Row: row, side: arrowio.Response})
	}
	return requests, responses
}

// TestMemoryIsBounded: what waits has a bound in bytes, which is that of the heap; the oldest goes first.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 8 << 20
	n := 60_000
	if testing.Short() {
		n = 30_000
	}
	requests, _ := events(n)
	h := newHalf(Config{Wait: time.Hour, MemoryBytes: limit})
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for _, e := range requests {
		h.process(t, e)
	}
	took := heap() - before
	waits := int(h.counts.All()[pipeline.CountWaitingRequests])
	evicted := int(h.counts.All()[pipeline.CountRequestsUnmet+":evicted"])
	t.Logf("%d requests wait in %d bytes of heap, %d each; counted are %d", waits, took, took/waits, h.bytes)
	if waits+evicted != n || evicted == 0 || took > limit*5/4 || h.bytes > limit {
		t.Errorf("%d wait, %d evicted, heap %d, counted %d, at most %d", waits, evicted, took, h.bytes, limit)
	}
	waiting := func(i int) bool { return h.by[request][key{arrowio.HashID(requests[i].ID), "m"}] != nil }
	if !waiting(n-1) || waiting(0) {
		t.Error("the newest has gone, or the oldest waits")
	}
	runtime.KeepAlive(requests)
}

// TestAnEvictedResponseGoesOn: it counts without its request.
func TestAnEvictedResponseGoesOn(t *testing.T) {
	_, responses := events(10)
	h := newHalf(Config{Wait: time.Minute, MemoryBytes: 3 * (entryBytes + 100)})
	for _, e := range responses {
		h.process(t, e)
	}
	c := h.counts.All()
	if c[pipeline.CountResponsesAlone+":evicted"] < 5 ||
		int64(len(h.emitted)) != c[pipeline.CountResponsesAlone+":evicted"] ||
		h.emitted[0].IDs[0] != arrowio.HashID(responses[0].ID) {
		t.Errorf("%d emitted, counts %v", len(h.emitted), c)
	}
}

// TestResponsesAfterARestart: those that go on before any record comes are of their shard's partition.
func TestResponsesAfterARestart(t *testing.T) {
	_, responses := events(2)
	before, after := newHalf(Config{Wait: time.Minute, MemoryBytes: 1 << 20}), newHalf(Config{Wait: time.Minute})
	before.process(t, responses[0])
	state, err := before.AppendState(nil)
	if err == nil {
		err = after.RestoreState(state)
	}
	if err == nil {
		err = after.release(t.Context(), func() pipeline.Time { return pipeline.EndTime }, after.emit)
	}
	if err != nil || len(after.emitted) != 1 || after.emitted[0].Origin.Partition != 3 {
		t.Errorf("%+v, %v; want one batch of partition 3", after.emitted, err)
	}
}

// TestRepeats: a second request of an id is dropped within the wait of the first; a request serves all responses that
// wait, the repeats of which the join recognises.
func TestRepeats(t *testing.T) {
	requests, responses := events(2)
	h := newHalf(Config{Wait: time.Minute, MemoryBytes: 1 << 20})
	h.process(t, responses[0])
	h.process(t, responses[0])
	h.process(t, requests[0])
	h.process(t, requests[1])
	h.process(t, requests[1])
	h.process(t, responses[1])
	c := h.counts.All()
	if len(h.emitted) != 2 || h.emitted[0].N != 2 || h.emitted[1].N != 1 || c[pipeline.CountPaired] != 2 ||
		c[pipeline.CountRequestsUnmet+":repeated"] != 1 {
		t.Errorf("%d batches, %d bytes, counts %v", len(h.emitted), h.bytes, c)
	}
	if b := h.emitted[0]; b.Slices[0].Values[b.Slices[0].Index[1]] != requests[0].Region ||
		b.Weight[1] != requests[0].Weight || b.Record() == nil {
		t.Errorf("got %+v", b)
	}
}

// TestGrowth: a new number of shards has what waited, each row once, in the shard of its id.
func TestGrowth(t *testing.T) {
	requests, responses := events(300)
	old := newHalf(Config{Wait: time.Minute, MemoryBytes: 1 << 20})
	for i := range requests {
		if i%2 == 0 {
			old.process(t, requests[i])
		} else {
			old.process(t, responses[i])
		}
	}
	state, err := old.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*half
	for id := range 3 {
		from := newHalf(old.cfg.Config)
		if err := from.RestoreState(state); err != nil {
			t.Fatal(err)
		}
		if again, _ := from.AppendState(nil); !slices.Equal(again, state) {
			t.Fatal("the state is another after it was restored")
		}
		h := newHalf(old.cfg.Config)
		err := h.Stage().Take(from.Operator, func(of arrowio.ID) bool { return pipeline.OwnerOf(of, 3) == id })
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	rows, moved := 0, int64(0)
	for i := range requests {
		h := all[pipeline.OwnerOf(arrowio.HashID(requests[i].ID), 3)]
		if i%2 == 0 {
			h.process(t, responses[i])
		} else {
			h.process(t, requests[i])
		}
	}
	for _, h := range all {
		c := h.counts.All()
		moved += c[pipeline.CountMovedHalves]
		for _, b := range h.emitted {
			rows += b.N
			if i := b.Slices[0].Index[0]; i < 0 {
				t.Error("a row without its region")
			}
		}
		if c[pipeline.CountWaitingRequests]+c[pipeline.CountWaitingResponses] != 0 {
			t.Errorf("counts %v", c)
		}
	}
	if rows != 300 || moved != 300 {
		t.Errorf("%d rows of 300, %d moved", rows, moved)
	}
}
