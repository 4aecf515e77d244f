package trouble

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

func TestRefusalsAreSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 200 {
			w.Refused(&pipeline.Record{Topic: "t", Partition: 1, Offset: int64(i)}, "not_arrow", "byte 0 \x1b[31m")
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n != 4 {
			t.Errorf("got %d lines, want one a minute:\n%s", n, &log)
		}
		for _, want := range []string{"example=t/1/0", "reason=not_arrow", "Inputs in docs/schema.md", "records=60"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %s:\n%s", want, &log)
			}
		}
		now := w.Now()
		if len(now) != 1 || now[0].Count != 200 || strings.Contains(now[0].Text, "\x1b") {
			t.Errorf("got %+v", now)
		}
		time.Sleep(lasts + time.Second)
		if now := w.Now(); len(now) != 0 {
			t.Errorf("what is over is shown: %+v", now)
		}
	})
}

// TestPlaceOfAPart: the example is where its producer wrote it.
func TestPlaceOfAPart(t *testing.T) {
	var log bytes.Buffer
	w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil))}
	made := []pipeline.Header{{Key: pipeline.SourceHeader, Value: []byte("mine@00ff/2/3/77/0")}}
	w.Refused(&pipeline.Record{Topic: "by-id", Partition: 1, Offset: 9, Headers: made}, "label_range", "x")
	const want = "mine/2/77 (its part by-id/1/9)"
	if now := w.Now(); len(now) != 1 || !strings.Contains(now[0].Text, want) || !strings.Contains(log.String(), want) {
		t.Errorf("got %+v and %s, want %s", now, &log, want)
	}
}

func TestLabelsThatMeetNothingAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Wait: time.Hour}
		w.Keyed.Store(true)
		look := func(labels, joined, waiting int64) {
			w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPredictions: 1000,
				pipeline.CountLabels: labels, pipeline.CountJoined: joined,
				pipeline.CountWaiting: max(0, 1000-joined), pipeline.CountWaitingLabels: waiting}}})
			time.Sleep(looked)
		}
		look(0, 0, 0)
		if look(1000, 250, 750); len(w.Now()) != 1 {
			t.Fatal("three quarters of the labels wait, and nothing is said")
		}
		if got := w.Now()[0]; got.Kind != "apart" || !strings.Contains(got.Mend, "to the partition of its id") ||
			!strings.Contains(got.Mend, "join.wait, 1h0m0s") ||
			!strings.Contains(log.String(), "level=WARN") {
			t.Errorf("got %+v, %s", got, &log)
		}
		for i := range int64(8) {
			look(1000+100*i, 250+100*i, 750)
		}
		if now := w.Now(); len(now) != 0 {
			t.Errorf("labels meet again: %+v", now)
		}
	})
}

// TestLabelsReadFirst: in a backlog labels may be read long before their predictions, which says nothing about ids;
// whatever came before, and in other shards.
func TestLabelsReadFirst(t *testing.T) {
	for name, before := range map[string]map[string]int64{
		"new": {},
		"old": {pipeline.CountPredictions: 10_000_000, pipeline.CountExpired: 200_000,
			pipeline.CountLabels: 9_800_000, pipeline.CountJoined: 9_800_000, pipeline.CountWaiting: 100},
		"moved": {pipeline.CountMoved: 500_000, pipeline.CountLabels: 500_000, pipeline.CountJoined: 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &Watch{Log: slog.New(slog.DiscardHandler)}
				look := looker(w, before)
				look(0, 0, 0)
				for _, predictions := range []int64{1000, 5000, 40000, 100000} {
					if look(predictions, 100000, predictions-10) != 0 {
						t.Errorf("after %d of 100000 predictions, all with their label: %+v", predictions, w.Now())
					}
				}
				if look(300000, 300000, 100000) != 1 {
					t.Error("200000 predictions and their labels do not meet, and nothing is said")
				}
			})
			synctest.Test(t, func(t *testing.T) {
				w := &Watch{Log: slog.New(slog.DiscardHandler)}
				look := looker(w, before)
				look(0, 0, 0)
				if look(1000, 100000, 0) != 1 {
					t.Error("labels of other ids are read first, and nothing is said")
				}
			})
		})
	}
}

// looker has w look at a shard with these counts beside those from before, and returns how many troubles there are.
func looker(w *Watch, before map[string]int64) func(predictions, labels, joined int64) int {
	return func(predictions, labels, joined int64) int {
		counts := map[string]int64{pipeline.CountPredictions: predictions, pipeline.CountLabels: labels,
			pipeline.CountJoined: joined, pipeline.CountWaiting: predictions - joined,
			pipeline.CountWaitingLabels: labels - joined}
		for key, n := range before {
			counts[key] += n
		}
		w.Look([]*pipeline.TaskStatus{{Counts: counts}})
		time.Sleep(looked)
		return len(w.Now())
	}
}

// TestLabelsWhoseTimeIsOver: labels that waited in vain were not read before their predictions, however many of the
// predictions have met one: here three of four labels are of rows that never come.
func TestLabelsWhoseTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{Log: slog.New(slog.DiscardHandler)}
		for i := range int64(20) {
			w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPredictions: 1000 * i,
				pipeline.CountLabels: 4000 * i, pipeline.CountJoined: 1000 * i, pipeline.CountOrphans: 3000 * i}}})
			time.Sleep(looked)
		}
		if len(w.Now()) != 1 {
			t.Error("of 4000 labels each look 3000 waited in vain, and nothing is said")
		}
	})
}

// TestLabelsOfABatch: predictions of one time wait for their labels, which come together, too late: their own times end
// the wait, so that neither waits for the other.
func TestLabelsOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Wait: time.Hour}
		look := func(labels, waiting, expired int64) {
			w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPredictions: 3000,
				pipeline.CountLabels: labels, pipeline.CountWaiting: waiting, pipeline.CountExpired: expired,
				pipeline.CountWaitingLabels: labels}}})
			time.Sleep(looked)
		}
		for range 20 {
			look(0, 3000, 0)
		}
		look(3000, 0, 3000)
		const want = "3000 predictions waited for join.wait, 1h0m0s"
		if now := w.Now(); len(now) != 1 || !strings.Contains(now[0].Text, want) ||
			!strings.Contains(log.String(), "level=WARN") {
			t.Errorf("got %+v, %s", now, &log)
		}
	})
}

// TestFewLabels: where ten labels come a day, and none meets its prediction, it is said as well, once a day, until they
// do or none come.
func TestFewLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Wait: time.Hour}
		var labels, joined, orphans, expired int64
		day := func(late, met int64) int {
			labels, joined, orphans, expired = labels+late+met, joined+met, orphans+late, expired+late
			for range 24 * time.Hour / looked {
				w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPredictions: 100 + labels,
					pipeline.CountLabels: labels, pipeline.CountJoined: joined, pipeline.CountOrphans: orphans,
					pipeline.CountExpired: expired, pipeline.CountWaiting: 100}}})
				time.Sleep(looked)
			}
			return len(w.Now())
		}
		for n, c := range []struct {
			late, met int64 // labels a day
			days      int
			said      int // troubles after these days
			lines     int // of the log, at most
		}{{0, 10, 20, 0, 0}, {10, 0, 11, 1, 7}, {0, 10, 1, 0, 7}, {10, 0, 11, 1, 14}, {0, 0, 2, 0, 15}} {
			said := 0
			for range c.days {
				said = day(c.late, c.met)
			}
			if lines := strings.Count(log.String(), "meet no predictions"); said != c.said || lines > c.lines {
				t.Errorf("%d: after %d days of %d late labels and %d that met: %+v, %d lines; want %d, at most %d", n,
					c.days, c.late, c.met, w.Now(), lines, c.said, c.lines)
			}
		}
	})
}

// TestLabelsFromBefore: labels of predictions that nobody has sent, as those of the time before a deployment, say
// nothing while none of its own predictions has waited in vain; nor do labels without any prediction.
func TestLabelsFromBefore(t *testing.T) {
	for _, predictions := range []int64{0, 20, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Wait: 720 * time.Hour}
			for hour := range int64(100) {
				for range time.Hour / looked {
					w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPredictions: predictions,
						pipeline.CountWaiting: predictions, pipeline.CountLabels: 20 * hour,
						pipeline.CountWaitingLabels: 20 * hour}}})
					time.Sleep(looked)
				}
			}
			if now := w.Now(); len(now) != 0 || log.Len() > 0 {
				t.Errorf("%d predictions: got %+v, %s", predictions, now, &log)
			}
		})
	}
}

// TestUnreadInputsAreNoFaultOfLabels: while an input cannot be read, and right after, labels that meet nothing say
// nothing about their ids.
func TestUnreadInputsAreNoFaultOfLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		blind := false
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Blind: func() bool { return blind }}
		look := func(predictions, labels, joined int64) {
			w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPredictions: predictions,
				pipeline.CountLabels: labels, pipeline.CountJoined: joined,
				pipeline.CountWaiting: predictions - joined, pipeline.CountWaitingLabels: labels - joined}}})
			time.Sleep(looked)
		}
		look(0, 0, 0)
		look(1000, 1000, 1000)
		blind = true
		for i := range int64(9) {
			look(1000, 2000+1000*i, 1000)
		}
		blind = false
		look(1000, 11000, 1000)
		look(12000, 12000, 12000)
		if now := w.Now(); len(now) != 0 || log.Len() > 0 {
			t.Errorf("said while the predictions could not be read: %+v\n%s", now, &log)
		}
		if look(13000, 13000, 12000); len(w.Now()) != 0 {
			t.Errorf("a few labels wait: %+v", w.Now())
		}
		if look(20000, 34000, 12000); len(w.Now()) != 1 {
			t.Error("labels meet nothing though all can be read, and nothing is said")
		}
		blind = true
		look(20000, 35000, 12000)
		if now := w.Now(); len(now) != 0 {
			t.Errorf("still said: %+v", now)
		}
	})
}

func TestRequestsThatMeetNothingAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil))}
		look := func(paired, unmet, alone int64) {
			w.Look([]*pipeline.TaskStatus{{Counts: map[string]int64{pipeline.CountPaired: paired,
				pipeline.CountRequestsUnmet + ":waited": unmet, pipeline.CountResponsesAlone + ":waited": alone}}})
			time.Sleep(looked)
		}
		look(0, 0, 0)
		if look(1000, 40, 0); len(w.Now()) != 0 {
			t.Fatalf("a few requests failed, and it is said: %+v", w.Now())
		}
		if look(1000, 200, 300); len(w.Now()) != 1 {
			t.Fatal("a third meets nothing, and nothing is said")
		}
		if got := w.Now()[0]; got.Kind != "pairs" || got.Count != 500 ||
			!strings.Contains(got.Mend, "inputs.request") ||
			!strings.Contains(log.String(), "requests and responses do not meet") {
			t.Errorf("got %+v, %s", got, &log)
		}
		for i := range int64(8) {
			look(1000+100*i, 200, 300)
		}
		if now := w.Now(); len(now) != 0 {
			t.Errorf("they meet again: %+v", now)
		}
	})
}

// TestMendOfLongTexts: a text over its fixed limit is not mended by room for larger records, so that is not the advice.
func TestMendOfLongTexts(t *testing.T) {
	var w Watch
	w.Log = slog.New(slog.DiscardHandler)
	w.Refused(&pipeline.Record{Topic: "t"}, "too_large", `column "region": text of 330 bytes, at most 256`)
	if mend := w.Now()[0].Mend; !strings.HasPrefix(mend, "send shorter texts, or fewer rows") {
		t.Errorf("to mend it: %s", mend)
	}
}

// TestMendOfEveryFormat: records that are not of their format are mended alike, whatever the format.
func TestMendOfEveryFormat(t *testing.T) {
	for _, reason := range []string{"not_json", "not_avro", "not_later"} {
		if got := mend(reason); got != mend("schema") || got == mend("not_arrow") {
			t.Errorf("%s: to mend it: %s", reason, got)
		}
	}
}

// TestSoftmax: logits that look like probabilities are said once a minute, with their model and what mends it.
func TestSoftmax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 90 {
			w.Softmax(arrowio.ModelKey{Model: "m", Version: "7"})
			time.Sleep(time.Second)
		}
		now := w.Now()
		if n := strings.Count(log.String(), "\n"); n != 2 || len(now) != 1 ||
			now[0].Title != "Logits of m 7 look like probabilities" || now[0].Mend != "send them as probs" {
			t.Errorf("%d lines, %+v", n, now)
		}
	})
}

// TestForgetsUnasked: model versions come and go for as long as a process runs, also where nobody asks for troubles.
func TestForgetsUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{Log: slog.New(slog.DiscardHandler)}
		for i := range 1000 {
			w.Softmax(arrowio.ModelKey{Model: "m", Version: fmt.Sprint(i)})
			w.Look(nil)
			time.Sleep(looked)
		}
		if most := int(lasts/looked) + 1; len(w.by) > most {
			t.Errorf("%d troubles are kept, of the last %v there are %d", len(w.by), lasts, most)
		}
	})
}

// TestOddScoresHideNothing: models whose logits look odd do not hide that rows are refused.
func TestOddScoresHideNothing(t *testing.T) {
	w := &Watch{Log: slog.New(slog.DiscardHandler)}
	w.Refused(&pipeline.Record{Topic: "t"}, "not_json", "x")
	for i := range 60 {
		w.Softmax(arrowio.ModelKey{Model: fmt.Sprint("m", i), Version: "1"})
	}
	for _, t := range w.Now() {
		if t.Kind == "refused" {
			return
		}
	}
	t.Errorf("%d troubles, none of refused records", len(w.Now()))
}
