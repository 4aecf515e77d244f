package registry

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// publications are n decisions about calibrators of two versions of a model: put in force, rolled back, pinned, tried
// as a canary, refused, or nothing; most are nothing.
func publications(t *testing.T, seed uint64, n int) []pipeline.Record {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	revision := [2]int{}
	var out []pipeline.Record
	for i := range n {
		v := r.IntN(2)
		c := record.Calibrator{Model: "m", Version: fmt.Sprint(v), DecidedAt: moment(i / 3),
			Outcome: fmt.Sprintf("no change: %d", i), Revision: revision[v], Stage: record.StageShadow}
		switch r.IntN(12) {
		case 0, 1:
			revision[v]++
			c.Outcome, c.Published, c.Stage, c.Revision, c.Calibrator = fmt.Sprintf("published: vector %d",
				i), true, record.StageFull, revision[v], []byte(fmt.Sprintf(`{"t":%d}`, i))
			if r.IntN(3) == 0 {
				c.Restores = new(int)
			}
		case 2:
			c.Outcome, c.Stage, c.Share, c.Calibrator = fmt.Sprintf("canary: %d",
				i), record.StageCanary, .1, []byte(`{"canary":1}`)
		case 3:
			c.Outcome, c.Stage = fmt.Sprintf("canary ended: %d", i), record.StageCanary
		case 4:
			c.Outcome, c.By = fmt.Sprintf("refused: pin %d", i), "ann"
		case 5, 6:
			c.Outcome, c.Pinned = fmt.Sprintf("pin by %d", i), true
			if revision[v] > 0 {
				c.Published, c.Stage, c.Calibrator = true, record.StageFull, []byte(fmt.Sprintf(`{"pin":%d}`, i))
			}
		case 7:
			c.Outcome = fmt.Sprintf("unpin by %d", i)
		}
		out = append(out, decision(t, record.DecisionCalibrator, c.Model, c.Version, c))
		out[i].Offset = int64(i)
	}
	return out
}

func calibratorOf(t *testing.T, e *Entry) (c record.Calibrator) {
	t.Helper()
	if err := json.Unmarshal(e.Record, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPublished finds every revision that was in force, by its newest record.
func TestPublished(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		rs := publications(t, 1, 300)
		s := open(t, cfg)
		put(t, s, rs, rand.New(rand.NewPCG(2, 2)))
		newest, revisions := map[string]string{}, map[string][]int{} // newest first
		for _, e := range reference(t, rs) {
			c := calibratorOf(t, &e)
			if c.Published && newest[e.Version+fmt.Sprint(c.Revision)] == "" {
				newest[e.Version+fmt.Sprint(c.Revision)] = string(e.Record)
				revisions[e.Version] = append(revisions[e.Version], c.Revision)
			}
		}
		check := func(s *Store) {
			t.Helper()
			for _, version := range []string{"0", "1", "2"} {
				want := slices.Clone(revisions[version])
				slices.Sort(want)
				got, err := s.Revisions(t.Context(), "m", version)
				if err != nil || !slices.Equal(got, want) || version != "2" && len(want) < 5 {
					t.Fatalf("version %s has revisions %v, %v; want %v, 5 or more", version, got, err, want)
				}
				for n := range len(want) + 3 {
					body, ok, err := s.Published(t.Context(), "m", version, n)
					if err != nil || string(body) != newest[version+fmt.Sprint(n)] || ok != (n > 0 && n <= len(want)) {
						t.Errorf("revision %d of version %s: %s %v %v, want %s", n, version, body, ok, err,
							newest[version+fmt.Sprint(n)])
					}
				}
			}
			if got, err := s.Versions(t.Context(), "m"); err != nil || !slices.Equal(got, []string{"0", "1"}) {
				t.Errorf("versions %q, %v", got, err)
			}
		}
		check(s)
		check(open(t, cfg))
	})
}

// TestPruneKeepsWhatIsInForce: whatever the bounds, of every version what is in force stays, and what was before it,
// and a pin and a canary that have not ended. A reference says which; what is beyond the bounds and none of that goes.
func TestPruneKeepsWhatIsInForce(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		for seed := range uint64(testsize.Short(1, 3)) {
			rs := publications(t, seed, 200)
			full := reference(t, rs)
			for _, c := range []Config{{Rows: 1}, {Rows: 20}, {MaxAge: time.Second},
				{Rows: 5, MaxAge: 10 * time.Second}} {
				c.Store, c.Path, c.Timeout = cfg.Store, cfg.Path, cfg.Timeout
				s := open(t, Options{Config: c, DSN: cfg.DSN})
				put(t, s, rs, rand.New(rand.NewPCG(seed, 2)))
				if _, err := s.Prune(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				force := needed(t, full)
				bounded := kept(full, c)
				want := slices.DeleteFunc(slices.Clone(full), func(e Entry) bool {
					return !force[e.ID] && !slices.ContainsFunc(bounded, func(o Entry) bool { return o.ID == e.ID })
				})
				same(t, fmt.Sprintf("seed %d, rows %d, age %s", seed, c.Rows, c.MaxAge), all(t, s, 0), want)
				if n, err := s.Prune(t.Context(), nil); err != nil || n != 0 {
					t.Errorf("pruned again: %d, %v", n, err)
				}
				if len(want) == len(full) || c.Rows == 1 && len(want) < 4 {
					t.Fatalf("%d of %d entries kept: the test tests nothing", len(want), len(full))
				}
				empty(t, cfg)
			}
		}
	})
}

// needed is what is in force or before it, by version, of entries newest first; as plain as can be.
func needed(t *testing.T, es []Entry) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	revisions, pins, canaries := map[string][]int{}, map[string]bool{}, map[string]bool{}
	for _, e := range es {
		c := calibratorOf(t, &e)
		switch {
		case c.Published:
			have := revisions[e.Version]
			if !slices.Contains(have, c.Revision) {
				have = append(have, c.Revision)
				revisions[e.Version] = have
			}
			if slices.Index(have, c.Revision) < 2 {
				out[e.ID] = true
			}
		case c.Stage == record.StageCanary:
			if !canaries[e.Version] && c.Share > 0 {
				out[e.ID] = true
			}
			canaries[e.Version] = true
		}
		if e.State == "pinned" || e.State == "unpinned" {
			if !pins[e.Version] && c.Pinned {
				out[e.ID] = true
			}
			pins[e.Version] = true
		}
	}
	return out
}

// TestPruneKeepsHeadsInForce: of each version the head that is served and the next one stay, with verdict and order;
// older ones go, and so do those that nobody serves.
func TestPruneKeepsHeadsInForce(t *testing.T) {
	each(t, func(t *testing.T, cfg Options) {
		cfg.Rows = 1
		var rs []pipeline.Record
		add := func(kind string, body any) {
			r := decision(t, kind, "m", "1", body)
			r.Offset = int64(len(rs))
			rs = append(rs, r)
		}
		id := func(n int) string { return fmt.Sprintf("m/1+head%d", n) }
		for n := 1; n <= 6; n++ {
			outcome := record.OutcomeTrained
			if n == 6 {
				outcome = record.OutcomeFailed
			}
			add(record.DecisionHead, record.Head{Kind: record.HeadTrained, ID: id(n), Model: "m", Version: "1",
				Number: n, Outcome: outcome, EffectiveFrom: moment(n), ShadowVersion: fmt.Sprint("1+head", n)})
			for _, state := range []string{record.ShadowRejected, record.ShadowReady} {
				if n != 4 || state == record.ShadowRejected {
					add(record.DecisionVerdict, record.Verdict{Kind: record.HeadVerdict, ID: id(n), Model: "m",
						Version: "1", State: state, DecidedAt: moment(10 + n)})
				}
			}
		}
		add(record.DecisionOrder, record.Order{Kind: record.HeadOrder, ID: id(2), Action: record.OrderAuto,
			At: moment(30)})
		add(record.DecisionOrder, record.Order{Kind: record.HeadOrder, ID: id(2), Action: record.OrderPin,
			At: moment(31)})
		add(record.DecisionOrder, record.Order{Kind: record.HeadOrder, ID: id(5), Action: record.OrderRollback,
			At: moment(32)})
		add(record.DecisionAlert, record.Alert{Model: "m", Version: "1", Rule: "ece", State: "firing", At: moment(100)})
		s := open(t, cfg)
		put(t, s, rs, rand.New(rand.NewPCG(1, 1)))
		if _, err := s.Prune(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range all(t, s, 0) {
			got += e.State + " " + e.Summary + "\n"
		}
		want := "firing ece: \npin pin of m/1+head2\nready : \nready : \ntrained 1+head3: \ntrained 1+head2: \n"
		if got != want {
			t.Errorf("kept:\n%swant:\n%s", got, want)
		}
	})
}
