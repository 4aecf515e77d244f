package registry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestKinds: each kind of record gives its columns, by the decisions topic and by the topic of its own the same.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		kind   string
		record any
		heads  bool
		want   string // kind model version slice at state by, summary
	}{
		{record.DecisionCalibrator, record.Calibrator{Model: "a/b", Version: "1", DecidedAt: moment(5),
			Outcome: "unpin by ann", By: "ann", Why: "done"}, false,
			"calibrator a/b 1  2023-11-14T22:13:25Z unpinned ann, unpin by ann"},
		{record.DecisionCalibrator, record.Calibrator{Model: "m", Version: "1", DecidedAt: moment(5),
			Outcome: "published: vector", Build: "v1 (abc)", Published: true, Calibrator: []byte("{}"),
			Evidence: record.Evidence{FitRows: 9, FitFrom: moment(1), FitTo: moment(2),
				FitDigest: "sha256:0123456789abcdef01"}}, false,
			"calibrator m 1  2023-11-14T22:13:25Z published , published: vector; fitted on 9 rows, " +
				"2023-11-14T22:13:21Z to 2023-11-14T22:13:22Z, sha256:0123456789ab, by v1 (abc)"},
		{record.DecisionAlert, record.Alert{Model: "m", Version: "1", Slice: "r=eu", At: moment(5), State: "firing",
			Rule: "ece", Message: "high"}, false, "alert m 1 r=eu 2023-11-14T22:13:25Z firing , ece: high"},
		{record.DecisionRequest, record.Finetune{Model: "m", Version: "1", DecidedAt: moment(5),
			ShadowVersion: "1+head1", Why: "ECE"}, false, "request m 1  2023-11-14T22:13:25Z requested , 1+head1: ECE"},
		{record.DecisionHead, record.Head{Kind: record.HeadTrained, Model: "m", Version: "1", EffectiveFrom: moment(5),
			ShadowVersion: "1+head1", Outcome: "trained", Trainer: "t1", Why: "better"}, true,
			"head m 1  2023-11-14T22:13:25Z trained t1, 1+head1: better"},
		{record.DecisionVerdict, record.Verdict{Kind: record.HeadVerdict, Model: "m", Version: "1",
			DecidedAt: moment(5), ShadowVersion: "1+head1", State: "ready", Why: "better"}, true,
			"verdict m 1  2023-11-14T22:13:25Z ready , 1+head1: better"},
		{record.DecisionOrder, record.Order{Kind: record.HeadOrder, ID: "a/b/1+head1", Action: "pin", By: "ann",
			At: moment(5)}, true, "order a/b 1  2023-11-14T22:13:25Z pin ann, pin of a/b/1+head1"},
		{record.DecisionOrder, json.RawMessage(`{"kind":"cancel","id":"m/1+head1","action":"cancel","by":"ann",
			"at":"noon"}`), true, "order m 1  1970-01-01T00:00:00.000000009Z cancel ann, cancel of m/1+head1"},
		{record.DecisionOrder, record.Order{Kind: record.HeadOrder, ID: "m/1+head9", Action: "pin", By: "eve",
			At: moment(5), Refused: "there is no such head"}, true,
			"order m 1  2023-11-14T22:13:25Z refused eve, pin of m/1+head9: refused: there is no such head"},
		{record.DecisionOrder, record.Order{Kind: record.CalibratorOrder, ID: "5f0c", Model: "a/b", Version: "1",
			Revision: 9, Action: "rollback", By: "eve", At: moment(5), Refused: "it is in no history"}, false,
			"order a/b 1  2023-11-14T22:13:25Z refused eve, rollback of a/b/1 to revision 9: refused: " +
				"it is in no history"},
	} {
		own := FromTopic(c.kind)
		if c.heads {
			own = FromHeads
		}
		d := decision(t, c.kind, "m", "1", c.record)
		plain := pipeline.Record{Value: []byte(mustJSON(t, c.record)), Time: 9}
		d.Time = 9
		a, ok, err := FromDecisions(&d)
		b, ok2, err2 := own(&plain)
		if !ok || err != nil || !ok2 || err2 != nil {
			t.Fatalf("%s: %v %v, %v %v", c.kind, ok, err, ok2, err2)
		}
		if a.ID != b.ID || a.seq != 1 || b.seq != 0 || !bytes.Equal(a.Record, b.Record) {
			t.Errorf("%s: by the decisions topic %+v, by its own %+v", c.kind, a, b)
		}
		columns := []string{a.Kind, a.Model, a.Version, a.Slice, a.At.String(), a.State, a.By}
		if got := strings.Join(columns, " ") + ", " + a.Summary; got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

// TestHeadWithoutItsWeights: a record of megabytes is no history; the entry is the same however large the head was.
func TestHeadWithoutItsWeights(t *testing.T) {
	h := record.Head{Kind: record.HeadTrained, ID: "m/1+head1", Model: "m", Version: "1", EffectiveFrom: moment(1),
		Weights: bytes.Repeat([]byte{7}, 1<<20), Evidence: []byte(`{"rows":5}`)}
	with := pipeline.Record{Value: []byte(mustJSON(t, h))}
	h.Weights = nil
	without := pipeline.Record{Value: []byte(mustJSON(t, h))}
	a, _, err := FromHeads(&with)
	b, _, err2 := FromHeads(&without)
	if err != nil || err2 != nil || a.ID != b.ID || len(a.Record) > 1000 || !strings.Contains(string(a.Record),
		`"rows":5`) {
		t.Errorf("%v %v, ids %s %s, %d bytes", err, err2, a.ID, b.ID, len(a.Record))
	}
	job := pipeline.Record{Value: []byte(`{"kind":"job","id":"m/1+head1"}`)}
	if _, ok, err := FromHeads(&job); ok || err != nil {
		t.Errorf("the beat of a job: %v, %v; want none", ok, err)
	}
}

// TestNamesOfAnyLength: names that an index cannot hold, and text that PostgreSQL refuses.
func TestNamesOfAnyLength(t *testing.T) {
	testsize.Slow(t)
	each(t, func(t *testing.T, cfg Options) {
		s := open(t, cfg)
		long := strings.Repeat("é", 2048)
		names := []string{long + "a", long + "b", "zero\x00byte", "bad\xffbytes", "plain"}
		var es []Entry
		for i, n := range names {
			r := pipeline.Record{Offset: int64(i),
				Value: []byte(mustJSON(t, record.Alert{Model: n, Version: "v\x00", At: moment(i), Message: "\x00"}))}
			e, ok, err := FromTopic(record.DecisionAlert)(&r)
			if !ok || err != nil {
				t.Fatal(err)
			}
			es = append(es, e)
		}
		if _, err := s.Put(t.Context(), place, 0, 5, es); err != nil {
			t.Fatal(err)
		}
		for i, n := range names {
			p, err := s.Query(t.Context(), Search{Model: n, Records: true})
			if err != nil || len(p.Entries) != 1 || p.Entries[0].ID != es[i].ID {
				t.Errorf("model %.20q…: %d entries, %v; want its own", n, len(p.Entries), err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"schema":1,"kind":"alert","model":"m","version":"1","record":{"model":"m","at":"2026-01-01T00:00:00Z"}}`,
		`{"kind":"order","record":{"id":"///+head"}}`,
		`{"kind":"head","record":{"model":"m","weights":"AAA="}}`,
		"{}",
		"",
		"[1]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []Decode{FromDecisions, FromHeads, FromTopic(record.DecisionCalibrator),
			FromTopic(record.DecisionOrder)} {
			r := pipeline.Record{Value: b}
			e, ok, err := decode(&r)
			if ok && (err != nil || e.Model == "" || len(e.ID) != 32 || strings.ContainsRune(e.Model+e.Summary, 0)) {
				t.Errorf("%q gives %+v, %v", b, e, err)
			}
		}
	})
}
