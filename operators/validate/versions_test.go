package validate_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

// shard is the operator with what it says of messages.
type shard struct {
	*validate.Operator
	counts *pipeline.Counts
	out    *pipeline.Out
	offset int64
	now    time.Time
}

func newShard(c validate.Config) *shard {
	counts := pipeline.NewCounts()
	out := pipeline.NewOut(counts)
	return &shard{Operator: validate.New(c, pipeline.Host{Out: out, Counts: counts}), counts: counts, out: out,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// send is a message with a row of each model, which may be MODEL@VERSION; it returns the reasons by row.
func (s *shard) send(t testing.TB, k int, models ...string) []string {
	t.Helper()
	b := &arrowio.Batch{N: len(models), K: k, Scores: make([]float32, len(models)*k), TS: make([]int64, len(models)),
		Label: make([]int32, len(models)), Model: make([]int32, len(models)),
		Origin: arrowio.Origin{Topic: "logits", Partition: 3, Offset: s.offset, Time: s.now.UnixNano()}}
	for i, m := range models {
		name, version, named := strings.Cut(m, "@")
		if !named {
			version = "1"
		}
		b.Models = append(b.Models, arrowio.ModelKey{Model: name, Version: version})
		b.Model[i], b.TS[i] = int32(i), s.now.UnixNano()
	}
	s.out.Begin(pipeline.Record{Topic: "logits", Partition: 3, Offset: s.offset})
	s.offset++
	s.out.NextBatch(b.N)
	rejects, err := s.Process(t.Context(), b, func(out *arrowio.Batch) (pipeline.Rejects, error) {
		return out.Reject, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.out.End()
	if rejects == nil {
		return make([]string, b.N)
	}
	return rejects
}

// detail is that of the latest dead letter.
func (s *shard) detail() string {
	ms := s.out.Drain()
	for _, h := range ms[len(ms)-1].Headers {
		if h.Key == "plumbline-detail" {
			return string(h.Value)
		}
	}
	return ""
}

// again restores the state into another operator.
func (s *shard) again(t *testing.T, c validate.Config) *shard {
	t.Helper()
	state, err := s.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	n := newShard(c)
	if err := n.RestoreState(state); err != nil {
		t.Fatal(err)
	}
	n.offset, n.now = s.offset, s.now
	second, err := n.AppendState(nil)
	if err != nil || string(second) != string(state) {
		t.Fatalf("a restored state is not the one that was stored: %v", err)
	}
	return n
}

// TestFirstMessageOwnsNoModel: the first messages agree on K, and one of another K that came before them is outvoted;
// rows of another K are refused from then on, with the message that K was learnt from.
func TestFirstMessageOwnsNoModel(t *testing.T) {
	s := newShard(validate.Config{})
	for i, k := range []int{5, 10, 10, 10} {
		if got := s.send(t, k, "m"); got[0] != "" {
			t.Fatalf("message %d of K = %d while nothing is decided: %q", i, k, got[0])
		}
		s = s.again(t, validate.Config{})
	}
	if got := s.send(t, 5, "m"); got[0] != validate.ReasonClasses {
		t.Fatalf("K = 5 after three messages of 10: %q", got[0])
	}
	want := "K = 5, expected K = 10 as learnt from logits partition 3 offset 1 at 2026-01-01T00:00:00Z"
	if d := s.detail(); !strings.Contains(d, want) {
		t.Errorf("detail %q, want %q", d, want)
	}
	if got := s.send(t, 10, "m"); got[0] != "" {
		t.Errorf("K = 10: %q", got[0])
	}
}

// TestUndecidedForEver: where no K leads, the messages with the most have it in the end; no more than a few different
// ones take part.
func TestUndecidedForEver(t *testing.T) {
	s := newShard(validate.Config{})
	rejected := 0
	for i := range 40 {
		if s.send(t, []int{5, 10}[i%2], "m")[0] != "" {
			rejected++
		}
	}
	if rejected != 4 {
		t.Errorf("%d of 40 messages that alternate are refused, want the 4 of the other K after 32", rejected)
	}
	for k := 2; k < 12; k++ {
		if got := s.send(t, k, "n")[0]; (got != "") != (k > 5) {
			t.Errorf("K = %d, the %d. different one: %q", k, k-1, got)
		}
	}
}

// TestOrderedClasses: what was settled for all shards stands above what was learnt, and after a restart.
func TestOrderedClasses(t *testing.T) {
	orders := validate.NewOrdered()
	c := validate.Config{Ordered: orders}
	s := newShard(c)
	for range 3 {
		s.send(t, 5, "m")
	}
	key := arrowio.ModelKey{Model: "m", Version: "1"}
	orders.Set(key, validate.Order{Classes: 10, Origin: "as ordered by ann"})
	orders.Set(arrowio.ModelKey{Model: "n", Version: "1"}, validate.Order{Classes: 3, Origin: "as ordered by ann"})
	for range 2 {
		if got := s.send(t, 5, "m"); got[0] != validate.ReasonClasses {
			t.Fatalf("K = 5 after an order for 10: %q", got[0])
		}
		if d := s.detail(); !strings.Contains(d, "K = 5, expected K = 10 as ordered by ann") {
			t.Errorf("detail %q", d)
		}
		if got := s.send(t, 10, "m"); got[0] != "" {
			t.Fatalf("K = 10 after an order for 10: %q", got[0])
		}
		if got := s.send(t, 10, "n"); got[0] != validate.ReasonClasses {
			t.Fatalf("the first message of another model, after an order for it: %q", got[0])
		}
		s = s.again(t, c)
	}
}

func names(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint("m", i))
	}
	return out
}

func count(reasons []string, reason string) (n int) {
	for _, r := range reasons {
		if r == reason {
			n++
		}
	}
	return n
}

// TestNewModelsAreBounded: names beyond the bounds are refused, those that are known are not, and what is refused is a
// function of the records.
func TestNewModelsAreBounded(t *testing.T) {
	c := validate.Config{Limits: validate.Limits{Max: 50, PerMinute: 2}}
	s := newShard(c)
	got := s.send(t, 3, names(0, 10_000)...)
	if n := count(got, ""); n != 20 || slices.Contains(got[:20], validate.ReasonModels) {
		t.Fatalf("%d of 10,000 new models are taken, want the first 20, of ten minutes", n)
	}
	if d := s.detail(); !strings.Contains(d, "9980 rows models: m20 version \"1\" is new, and more than 2 new model "+
		"versions a minute have come (versions.new_per_minute)") && !strings.Contains(d, "more than 2 new") {
		t.Errorf("detail %q", d)
	}
	s = s.again(t, c)
	s.now = s.now.Add(time.Minute)
	if n := count(s.send(t, 3, names(0, 30)...), ""); n != 22 {
		t.Errorf("a minute later %d are known, want 22", n)
	}
	// Full: 30 more in 15 minutes fill it, then none is taken while all have rows.
	for range 20 {
		s.now = s.now.Add(time.Minute)
		s.send(t, 3, names(0, 60)...)
	}
	got = s.send(t, 3, names(0, 60)...)
	if n := count(got, ""); n != 50 {
		t.Fatalf("%d of 60 are known, want 50", n)
	}
	if d := s.detail(); !strings.Contains(d, "50 model versions had rows in the last 1h0m0s, 0 of this model "+
		"(versions.max: 50)") {
		t.Errorf("detail %q", d)
	}
	// All but the first ten are silent for an hour: others take their places.
	for range 61 {
		s.now = s.now.Add(time.Minute)
		if n := count(s.send(t, 3, names(0, 10)...), ""); n != 10 {
			t.Fatal("a model with rows is not known any more")
		}
	}
	if n := count(s.send(t, 3, names(100, 130)...), ""); n != 20 {
		t.Errorf("%d new models take the places of silent ones, want 20, of ten minutes", n)
	}
	if n := count(s.send(t, 3, names(0, 10)...), ""); n != 10 {
		t.Error("a model with rows is not known any more")
	}
}

// TestManyModelsDeployedAtOnce: new versions of known models, all at once and day after day, count against no rate:
// a canary beside the old version neither. Versions that are made up, and new models, do.
func TestManyModelsDeployedAtOnce(t *testing.T) {
	c := validate.Config{Limits: validate.Limits{Max: 1000, PerMinute: 30}}
	s := newShard(c)
	versions := func(version string) (out []string) {
		for i := range 400 {
			out = append(out, fmt.Sprintf("m%d@%s", i, version))
		}
		return out
	}
	if n := count(s.send(t, 3, versions("0")...), ""); n != 300 {
		t.Fatalf("%d of 400 new models are taken, want 300", n)
	}
	s.now = s.now.Add(10 * time.Minute)
	s.send(t, 3, versions("0")...)
	for day := 1; day < 5; day++ {
		s.now = s.now.Add(24 * time.Hour)
		s.send(t, 3, versions(fmt.Sprint(day-1))...)
		s = s.again(t, c)
		s.now = s.now.Add(time.Minute)
		if n := count(s.send(t, 3, versions(fmt.Sprint(day))...), ""); n != 400 {
			t.Fatalf("day %d: %d of 400 new versions of known models are taken", day, n)
		}
		if n := count(s.send(t, 3, versions("canary")[:200]...), ""); n != 200 {
			t.Fatalf("day %d: %d of 200 canaries are taken", day, n)
		}
	}
	s.now = s.now.Add(24 * time.Hour)
	if n := count(s.send(t, 3, names(1000, 1400)...), ""); n != 300 {
		t.Errorf("%d of 400 new models are taken, want 300", n)
	}
	s = newShard(c)
	taken := 0
	for i := range 600 {
		s.now = s.now.Add(time.Second / 10)
		taken += count(s.send(t, 3, fmt.Sprintf("m@%d", i)), "")
	}
	if taken > 300+30+2 {
		t.Errorf("in a minute %d versions that a model makes up are taken", taken)
	}
}

// BenchmarkRefusedVersion is of messages of 1,000 rows of a new version for which 20,000 busy ones leave no room.
func BenchmarkRefusedVersion(b *testing.B) {
	s := newShard(validate.Config{Limits: validate.Limits{Max: 20_000, PerMinute: 2000}})
	s.send(b, 3, names(0, 20_000)...)
	rows := slices.Repeat([]string{"m1@next"}, 1000)
	for b.Loop() {
		if n := count(s.send(b, 3, rows...), validate.ReasonModels); n != len(rows) {
			b.Fatalf("%d rows are refused", n)
		}
	}
}

// TestRoomForOtherModels: a model with a new version for each request leaves room for new versions of other models.
func TestRoomForOtherModels(t *testing.T) {
	s := newShard(validate.Config{Limits: validate.Limits{Max: 50}})
	for i := range 100 {
		if got := s.send(t, 3, fmt.Sprintf("m@%d", i)); (got[0] == "") != (i < 45) {
			t.Fatalf("version %d of a model: %q", i, got)
		}
	}
	want := `m version "99" is new, and 45 model versions had rows in the last 1h0m0s, 45 of this model ` +
		`(versions.max: 50)`
	if d := s.detail(); !strings.Contains(d, want) {
		t.Errorf("detail %q", d)
	}
	if got := s.send(t, 3, "n@1", "n@2", "o"); count(got, "") != 3 {
		t.Errorf("new versions of other models: %q", got)
	}
}

// TestTimeOfRefusedRecords: what is refused for its time does not move the time by which new versions are admitted.
func TestTimeOfRefusedRecords(t *testing.T) {
	c := validate.Config{Limits: validate.Limits{Max: 1000, PerMinute: 30}, MaxAhead: int64(5 * time.Minute)}
	for _, test := range []struct {
		name, reason string
		origin       arrowio.Origin
		ts           int64
	}{
		{"a record that is ahead", validate.ReasonAhead, arrowio.Origin{Time: inTenYears(), Ahead: true}, inTenYears()},
		{"a row out of range of a record without time", arrowio.TimeRange, arrowio.Origin{}, math.MaxInt64},
	} {
		s := newShard(c)
		before, err := s.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &arrowio.Batch{N: 1, K: 3, Scores: make([]float32, 3), TS: []int64{test.ts}, Label: []int32{0},
			Models: []arrowio.ModelKey{{Model: "bad", Version: "1"}}, Origin: test.origin}
		s.out.Begin(pipeline.Record{})
		s.out.NextBatch(1)
		rejects, err := s.Process(t.Context(), b, func(out *arrowio.Batch) (pipeline.Rejects, error) {
			return out.Reject, nil
		})
		s.out.End()
		if err != nil || len(rejects) != 1 || rejects[0] != test.reason {
			t.Fatalf("%s: %v, %v; want %s", test.name, rejects, err, test.reason)
		}
		if after, err := s.AppendState(nil); err != nil || string(after) != string(before) {
			t.Errorf("%s: it changes the state; %v", test.name, err)
		}
		if n := s.refused(t, 600); n > 0 {
			t.Errorf("%s: then %d of 600 new versions, one a minute, are refused", test.name, n)
		}
	}
}

// refused is how many of n new models are refused, of which one comes each minute.
func (s *shard) refused(t *testing.T, n int) (refused int) {
	t.Helper()
	for i := range n {
		s.now = s.now.Add(time.Minute)
		refused += count(s.send(t, 3, fmt.Sprint("n", i)), validate.ReasonModels)
	}
	return refused
}

func inTenYears() int64 { return time.Now().AddDate(10, 0, 0).UnixNano() }

// TestStateThatIsAhead: a state whose time lies ahead, of before refused records were left out of it, goes on with the
// time of the next record, whether or not it is stored once more before that one, and when shards take it over. New
// versions are admitted again, and its own can be silent.
func TestStateThatIsAhead(t *testing.T) {
	for _, most := range []int{2, 1000} {
		c := validate.Config{Limits: validate.Limits{Max: most, PerMinute: 30}}
		old := newShard(c)
		now := old.now
		old.now = time.Unix(0, inTenYears())
		old.send(t, 3, "a", "b")
		old.now = now
		c.MaxAhead = int64(5 * time.Minute)
		taken := newShard(c)
		if err := taken.Stage().Take(old.again(t, c).Operator, nil); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*shard{"restored": old.again(t, c), "twice": old.again(t, c).again(t, c),
			"taken over": taken, "taken over and restored": taken.again(t, c)} {
			s.send(t, 3, "a")
			s = s.again(t, c)
			if most > 2 {
				if n := s.refused(t, 600); n > 0 {
					t.Errorf("%s: %d of 600 new versions, one a minute, are refused", name, n)
				}
				continue
			}
			if n := count(s.send(t, 3, "c"), validate.ReasonModels); n != 1 {
				t.Errorf("%s: a third version is taken, at most 2 may be", name)
			}
			s.now = s.now.Add(time.Hour)
			if n := count(s.send(t, 3, "c"), validate.ReasonModels); n != 0 {
				t.Errorf("%s: after an hour of silence no version gives way to a new one", name)
			}
		}
	}
}

// TestReservedPlacesStay: the tenth that is kept for models with few versions stays theirs when their versions have
// been silent for an hour: a model that makes versions up must not get these places by replacing them.
func TestReservedPlacesStay(t *testing.T) {
	s := newShard(validate.Config{Limits: validate.Limits{Max: 50}})
	made := 0
	makeUp := func(n int) {
		for range n {
			s.send(t, 3, fmt.Sprintf("m@%d", made))
			made++
		}
	}
	others := []string{"n@1", "n@2", "o@1", "o@2", "p@1"}
	makeUp(60) // 45 are known
	if got := s.send(t, 3, others...); count(got, "") != 5 {
		t.Fatalf("at first: %q", got)
	}
	for round := range 3 {
		// The others are silent for 70 minutes; m has a new version every 20 seconds.
		for range 70 * 3 {
			s.now = s.now.Add(20 * time.Second)
			makeUp(1)
		}
		if got := s.send(t, 3, others...); count(got, "") != 5 {
			t.Errorf("round %d: versions of models that have one or two are refused: %q", round, got)
		}
	}
}
