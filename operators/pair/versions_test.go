package pair

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// restarted is a half with the state and the counts of another.
func restarted(t testing.TB, h *half) *half {
	t.Helper()
	state, err := h.AppendState(nil)
	after := newHalf(h.cfg.Config)
	if err == nil {
		err = after.RestoreState(state)
	}
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := after.AppendState(nil); !slices.Equal(again, state) || after.bytes != h.bytes {
		t.Errorf("after a restart the state has %d bytes and %d in memory, want %d and %d", len(again), after.bytes,
			len(state), h.bytes)
	}
	for name, n := range h.counts.All() {
		after.counts.Add(name, n)
	}
	after.emitted = h.emitted
	return after
}

// passes lets the watermark come to wm.
func (h *half) passes(t testing.TB, wm pipeline.Time) {
	t.Helper()
	if err := h.release(t.Context(), func() pipeline.Time { return wm }, h.emit); err != nil {
		t.Fatal(err)
	}
}

// rows are the emitted ones: version, region and weight, in order of version.
func (h *half) rows() (out []string) {
	for i := range h.emitted {
		b := &h.emitted[i]
		for j := range b.N {
			m, _ := b.ModelOf(j)
			region := "none"
			if at := b.Slices[0].Index[j]; at >= 0 {
				region = b.Slices[0].Values[at]
			}
			out = append(out, fmt.Sprint(m.Version, " ", region, " ", b.Weight[j]))
		}
	}
	slices.Sort(out)
	return out
}

// TestVersionsOfOneRequest: all versions that answer a request within its wait have its cohort and its weight, in
// whatever order the rows come, with a restart between any two. The request has met once.
func TestVersionsOfOneRequest(t *testing.T) {
	const wait = 10 * time.Second
	requests, responses := events(1)
	q, first := requests[0], responses[0]
	first.TS = q.TS
	with, without := fmt.Sprint(" ", q.Region, " ", q.Weight), " none 1"
	for _, c := range []struct {
		order string        // of the request Q and the responses A, B, C
		c     time.Duration // event time of C after the request
		want  string        // what C has
	}{
		{"QABC", 0, with}, {"AQBC", 0, with}, {"ABQC", 0, with}, {"ABCQ", 0, with}, {"CBAQ", wait, with},
		{"QABC", wait, with}, {"CQAB", wait, with}, {"CQAB", wait + 1, without}, {"QABC", wait + 1, without},
	} {
		h := newHalf(Config{Wait: wait, MemoryBytes: 1 << 20})
		for _, name := range strings.Split(c.order, "") {
			e := q
			if name != "Q" {
				e = first
				e.Version = name
			}
			if name == "C" {
				e.TS += int64(c.c)
			}
			h.process(t, e)
			h.counts.AddReason(pipeline.CountRows, "logits", 1)
			h = restarted(t, h)
		}
		h.passes(t, q.TS+int64(wait))
		if len(h.by[request]) != 1 {
			t.Errorf("%s: the request does not wait", c.order)
		}
		h.passes(t, q.TS+int64(wait)+2)
		got, want := h.rows(), []string{"A" + with, "B" + with, "C" + c.want}
		n := h.counts.All()
		alone := int64(strings.Count(fmt.Sprint(got), without))
		if !slices.Equal(got, want) || n[pipeline.CountPaired] != 1 || n[pipeline.CountRequestsUnmet+":waited"] != 0 ||
			n[pipeline.CountWaitingRequests] != 0 || n[pipeline.CountResponsesAlone+":waited"] != alone {
			t.Errorf("%s, C after %s: rows %q, want %q; counts %v", c.order, c.c, got, want, n)
		}
		n[pipeline.CountPredictions], n[pipeline.CountUnlabelled] = 3, 3 // as the join counts them
		if rows, detail := pipeline.Unaccounted(n); rows != 0 {
			t.Errorf("%s: %s", c.order, detail)
		}
		if h.bytes != 0 || len(h.by[request])+len(h.by[response]) != 0 {
			t.Errorf("%s: %d bytes stay", c.order, h.bytes)
		}
	}
}

// TestIDsUsedAgain: a request beyond the wait of the first takes its place, wherever the watermark is.
func TestIDsUsedAgain(t *testing.T) {
	const wait = 10 * time.Second
	requests, responses := events(2)
	for _, passes := range []bool{false, true} {
		h := newHalf(Config{Wait: wait, MemoryBytes: 1 << 20})
		for i := range 2 {
			q, a := requests[i], responses[i]
			q.ID, a.ID, a.Version = "again", "again", fmt.Sprint(i)
			q.TS = requests[0].TS + int64(i)*(int64(wait)+1)
			a.TS = q.TS
			if passes {
				h.passes(t, q.TS)
			}
			h.process(t, q)
			h.process(t, a)
		}
		want := []string{fmt.Sprint("0 ", requests[0].Region, " ", requests[0].Weight),
			fmt.Sprint("1 ", requests[1].Region, " ", requests[1].Weight)}
		if got := h.rows(); !slices.Equal(got, want) || h.counts.All()[pipeline.CountPaired] != 2 {
			t.Errorf("the watermark passes: %t: rows %q, want %q; counts %v", passes, got, want, h.counts.All())
		}
	}
}

// TestMetRequestsGoFirst: they are within the bound in bytes, leave before anything that has met none, and are counted.
func TestMetRequestsGoFirst(t *testing.T) {
	requests, responses := events(200)
	limit := 50 * (entryBytes + 100)
	h := newHalf(Config{Wait: time.Hour, MemoryBytes: limit})
	for i := range 20 {
		h.process(t, requests[i]) // the oldest of all
	}
	for i := 20; i < 200; i++ {
		h.process(t, requests[i])
		h.process(t, responses[i])
		if h.bytes > limit {
			t.Fatalf("%d bytes, at most %d", h.bytes, limit)
		}
	}
	n := h.counts.All()
	if n[pipeline.CountPaired] != 180 || n[pipeline.CountPairedEvicted] != 180-int64(len(h.queues[met])) ||
		len(h.queues[met]) < 10 || n[pipeline.CountWaitingRequests] != 20 {
		t.Errorf("%d that have met stay, counts %v", len(h.queues[met]), n)
	}
	if first := h.queues[met].first(); first.ts < requests[150].TS {
		t.Errorf("an old request stays: %d", first.ts)
	}
}

// TestMetRequestsMove: with a new number of shards they serve the next version in their new shard, and are counted in
// the old one.
func TestMetRequestsMove(t *testing.T) {
	requests, responses := events(1)
	old := newHalf(Config{Wait: time.Minute, MemoryBytes: 1 << 20})
	old.process(t, requests[0])
	old.process(t, responses[0])
	h := newHalf(old.cfg.Config)
	if err := h.takeOver(restarted(t, old).Operator, func(arrowio.ID) bool { return true }); err != nil {
		t.Fatal(err)
	}
	shadow := responses[0]
	shadow.Version = "shadow"
	h.process(t, shadow)
	h.passes(t, pipeline.EndTime)
	want := []string{fmt.Sprint("shadow ", requests[0].Region, " ", requests[0].Weight)}
	for name, n := range h.counts.All() {
		if n != 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	if got := h.rows(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStateWithoutMetRequests: a state that was written before requests stayed is read as before, and is written again
// where none has met.
func TestStateWithoutMetRequests(t *testing.T) {
	requests, responses := events(4)
	h := newHalf(Config{Wait: time.Minute, MemoryBytes: 1 << 20})
	for i := range requests {
		e := requests[i]
		if i%2 == 1 {
			e = responses[i]
		}
		h.process(t, e)
	}
	before := binenc.AppendUvarint(nil, 4)
	for _, e := range h.waiting(response, request) {
		before = binenc.AppendString(append(before, e.key.id[:]...), e.key.model)
		before = append(binenc.AppendVarint(before, e.ts), binenc.Flags(e.kind == request))
		before = binenc.AppendBytes(before, e.row)
	}
	if got, err := h.AppendState(nil); err != nil || !slices.Equal(got, before) {
		t.Errorf("%d bytes, %v; want the %d of the state before", len(got), err, len(before))
	}
	after := newHalf(h.cfg.Config)
	if err := after.RestoreState(before); err != nil || len(after.queues[request]) != 2 ||
		len(after.queues[response]) != 2 {
		t.Errorf("%v; %d requests and %d responses wait, want 2 and 2", err, len(after.queues[request]),
			len(after.queues[response]))
	}
}

// TestNullWeightOfAResponse: it lacks a weight as one without the column does, and has that of its request; 1 where
// neither has any.
func TestNullWeightOfAResponse(t *testing.T) {
	requests, responses := events(1)
	for _, c := range []struct {
		name              string
		request, response []float32 // NaN = null
		want              float32
	}{
		{"no column", []float32{3}, nil, 3},
		{"null", []float32{3}, []float32{nan32}, 3},
		{"its own", []float32{3}, []float32{2}, 2},
		{"null, of a request with null", []float32{nan32}, []float32{nan32}, 1},
		{"no columns", nil, nil, 1},
	} {
		for _, first := range []arrowio.Side{arrowio.Request, arrowio.Response} {
			h := newHalf(Config{Wait: time.Minute, MemoryBytes: 1 << 20})
			q, a := requests[0].rows(), responses[0].rows()
			q.Weight, q.NoWeight = nulls(c.request)
			a.Weight, a.NoWeight = nulls(c.response)
			if first == arrowio.Request {
				h.read(t, q)
				h.read(t, a)
			} else {
				h.read(t, a)
				h.read(t, q)
			}
			if len(h.emitted) != 1 || h.emitted[0].Weight[0] != c.want {
				t.Errorf("%s: got %+v, want a row of weight %v", c.name, h.emitted, c.want)
			}
		}
	}
}

var nan32 = float32(math.NaN())

// nulls are values of which those that are NaN are absent.
func nulls(v []float32) (values []float32, absent []bool) {
	for _, x := range v {
		values, absent = append(values, 1), append(absent, x != x)
		if x == x {
			values[len(values)-1] = x
		}
	}
	return values, absent
}
