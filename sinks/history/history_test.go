package history

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

var t0 = time.Date(2024, 3, 5, 12, 0, 0, 0, time.UTC)

func stamp(i int) record.Time {
	return record.At(t0.Add(time.Duration(i) * 10 * time.Second).UnixNano())
}

func rowsSnap(i int) record.Snapshot {
	return record.Snapshot{
		Schema: 1, Model: "m", Version: "1", At: stamp(i), Labelled: int64(i),
		Window: record.Window{Name: "w", Kind: "rows", End: stamp(i)},
		Raw:    record.Metrics{Bins: []record.Bin{{N: 1}}, CDF: &record.CDF{}},
	}
}

func timeSnap(end, at int) record.Snapshot {
	s := rowsSnap(at)
	s.Window = record.Window{Name: "hour", Kind: "time", End: stamp(end)}
	return s
}

var key = SnapshotKey{"m", "1", "", "w"}

func labelled(t *testing.T, h *History, k SnapshotKey) string {
	t.Helper()
	s, _ := h.Snapshots(k, 0)
	out := ""
	for _, x := range s {
		out += fmt.Sprint(x.Labelled, " ")
	}
	return out
}

func TestHistorySnapshotRing(t *testing.T) {
	h := New(Config{SnapshotsPerKey: 4, DetailedPerKey: 2})
	for _, i := range []int{1, 2, 4, 3, 3, 5, 1, 6} { // out of order, a repeat, one older than the full ring
		h.AddSnapshot(rowsSnap(i))
	}
	if got, want := labelled(t, h, key), "3 4 5 6 "; got != want {
		t.Errorf("ring: got %q, want %q", got, want)
	}
	if got := h.Totals(); got.Repeats != 2 || got.Snapshots != 4 || got.Keys != 1 {
		t.Errorf("stats: got %+v, want 2 repeats, 4 snapshots, 1 key", got)
	}
	all, _ := h.Snapshots(key, 0)
	for i, s := range all {
		if got, want := s.Raw.CDF != nil, i >= 2; got != want || len(s.Raw.Bins) != 1 {
			t.Errorf("snapshot %d of 4: got a CDF: %v, want %v (the newest two are detailed); %d bins, want 1", i, got,
				want, len(s.Raw.Bins))
		}
	}
	if two, _ := h.Snapshots(key, 2); len(two) != 2 || two[0].Labelled != 5 {
		t.Errorf("limit 2: got %d snapshots from %d, want 2 from 5", len(two), two[0].Labelled)
	}
	if s, ok := h.Latest(key); !ok || s.Labelled != 6 {
		t.Errorf("latest: got %d, %v, want 6", s.Labelled, ok)
	}
	if s, ok := h.AsOf(key, stamp(4).UnixNano()+1); !ok || s.Labelled != 4 {
		t.Errorf("as of pane 4: got %d, %v", s.Labelled, ok)
	}
	if _, ok := h.AsOf(key, 0); ok {
		t.Error("as of 1970: got a snapshot, want none")
	}
}

// TestHistoryOfBefore: what was published before is added in order to a series that there is, and to no other.
func TestHistoryOfBefore(t *testing.T) {
	h := New(Config{SnapshotsPerKey: 3})
	h.AddSnapshot(rowsSnap(9))
	for i := range 8 {
		s, other := rowsSnap(i+1), slicedSnap(1, i+1)
		h.AddPast(&s)
		h.AddPast(&other)
	}
	later, large := rowsSnap(10), rowsSnap(8) // of a state that was given up; of no task
	large.Raw.Bins = make([]record.Bin, 100)
	large.At = record.At(stamp(8).UnixNano() - 1)
	h.AddPast(&later)
	h.AddPast(&large)
	got, _ := h.Snapshots(SnapshotKey{"m", "1", "", "w"}, 0)
	if len(got) != 3 || got[0].At != stamp(7) || got[2].At != stamp(9) || len(h.Series()) != 1 {
		t.Errorf("%d snapshots of %d series, want those of 7 to 9 of one: %v", len(got), len(h.Series()), got)
	}
}

// TestHistoryOfBeforeRevisesNoNewest: the newest is what the task knows, whatever the topic says.
func TestHistoryOfBeforeRevisesNoNewest(t *testing.T) {
	h := New(Config{})
	h.AddSnapshot(timeSnap(10, 5))
	later := timeSnap(10, 6)
	h.AddPast(&later)
	if s, _ := h.Latest(SnapshotKey{"m", "1", "", "hour"}); s.Labelled != 5 {
		t.Errorf("the newest has %d rows, want the task's 5", s.Labelled)
	}
}

func TestHistoryTimeWindowIsRevised(t *testing.T) {
	h := New(Config{DetailedPerKey: 1})
	k := SnapshotKey{"m", "1", "", "hour"}
	for _, e := range [][2]int{{10, 11}, {20, 21}, {10, 15}, {10, 12}} {
		h.AddSnapshot(timeSnap(e[0], e[1]))
	}
	if got, want := labelled(t, h, k), "15 21 "; got != want {
		t.Errorf("got %q, want %q: one entry a window, the latest revision", got, want)
	}
	if all, _ := h.Snapshots(k, 0); all[0].Raw.CDF != nil || all[1].Raw.CDF == nil {
		t.Error("a late revision must not keep its detail, the newest window must")
	}
}

func TestHistoryEvictsTheStalestKey(t *testing.T) {
	h := New(Config{Keys: 2})
	for _, v := range []string{"1", "2", "1", "3"} {
		s := rowsSnap(1)
		s.Version = v
		h.AddSnapshot(s)
	}
	got := ""
	for _, s := range h.Series() {
		got += s.Version
	}
	if got != "13" || h.Totals().EvictedKeys != 1 {
		t.Errorf("got versions %q and %d evicted, want 13 and 1", got, h.Totals().EvictedKeys)
	}
}

func alert(i int, rule, state string) record.Alert {
	return record.Alert{Model: "m", Version: "1", Rule: rule, State: state, At: stamp(i)}
}

func TestHistoryAlerts(t *testing.T) {
	h := New(Config{AlertsPerModel: 3})
	h.AddAlert(alert(1, "a", "firing"))
	h.AddAlert(alert(1, "a", "firing"))
	h.AddAlert(alert(2, "b", "pending"))
	h.AddAlert(alert(3, "b", "firing"))
	h.AddAlert(alert(4, "a", "resolved"))
	h.AddAlert(alert(3, "a", "firing")) // late: must not reopen the resolved rule
	if got := h.Alerts("m", "", 0); len(got) != 3 || got[2].State != "resolved" {
		t.Errorf("ring: got %+v, want the 3 newest, resolved last", got)
	}
	got := h.CurrentAlerts("", "")
	for _, a := range got {
		if a.Rule == "a" && a.At == stamp(3) {
			t.Errorf("rule a is current again by an alert older than its resolution")
		}
	}
	if len(got) != 1 || got[0].Rule != "b" || got[0].State != "firing" {
		t.Errorf("current: got %+v, want b firing", got)
	}
	if n := len(h.CurrentAlerts("other", "")); n != 0 {
		t.Errorf("another model: got %d current alerts, want 0", n)
	}
}

func TestHistoryCalibrators(t *testing.T) {
	h := New(Config{CalibratorsPerModel: 2})
	for _, i := range []int{1, 2, 2, 3} {
		h.AddCalibrator(record.Calibrator{Model: "m", Version: "1", Revision: i, DecidedAt: stamp(i)})
	}
	got := h.Calibrators("m", "1", 0)
	if len(got) != 2 || got[0].Revision != 2 || got[1].Revision != 3 {
		t.Errorf("got %+v, want revisions 2 and 3", got)
	}
	if got := h.Calibrators("m", "2", 0); got == nil || len(got) != 0 {
		t.Errorf("unknown version: got %v, want an empty list", got)
	}
}

// TestHistoryOrdersOfOnePane: what people decide within one pane has one time, and is kept all the same; what comes
// again is not.
func TestHistoryOrdersOfOnePane(t *testing.T) {
	h := New(Config{})
	for _, o := range [][3]string{{"pin by ann", "ann", "audit"}, {"unpin by ann", "ann", "over"},
		{"pin by ann", "ann", "again"}, {"pin by ann", "ann", "audit"}} {
		h.AddCalibrator(record.Calibrator{Model: "m", Version: "1", Revision: 3, DecidedAt: stamp(1), Reason: "manual",
			Outcome: o[0], By: o[1], Why: o[2]})
	}
	if got := h.Calibrators("m", "1", 0); len(got) != 3 || got[1].Outcome != "unpin by ann" || got[2].Why != "again" ||
		h.Totals().Repeats != 1 {
		t.Errorf("kept %+v, %d repeats; want the three decisions and one repeat", got, h.Totals().Repeats)
	}
}

func TestHistoryBadTime(t *testing.T) {
	h := New(Config{})
	h.AddSnapshot(record.Snapshot{})
	h.AddAlert(record.Alert{})
	h.AddCalibrator(record.Calibrator{})
	if st := h.Totals(); st.BadTimes != 3 || st.Keys != 0 {
		t.Errorf("got %+v, want 3 bad times and no key", st)
	}
}

func TestSubscribeResumes(t *testing.T) {
	h := New(Config{Backlog: 2})
	for i := 1; i <= 4; i++ { // the backlog is trimmed to 2 when the fourth comes
		h.AddSnapshot(rowsSnap(i))
	}
	f := func(epoch string, seq uint64, complete bool, want ...uint64) {
		t.Helper()
		s, err := h.Subscribe(epoch, seq, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got := []uint64{}
		for _, e := range s.Backlog {
			got = append(got, e.Seq)
		}
		if s.Complete != complete || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %d: got %v, complete %v; want %v, %v", seq, got, s.Complete, want, complete)
		}
	}
	epoch, seq := h.Position()
	if seq != 4 {
		t.Fatalf("position: got %d, want 4", seq)
	}
	f("", 0, true)
	f(epoch, 0, false)
	f(epoch, 4, true)
	f(epoch, 3, true, 4)
	f(epoch, 2, true, 3, 4)
	f(epoch, 1, false)
	f(epoch, 9, false)
	f("another run", 3, false)
}

func TestSubscribeFromTheStart(t *testing.T) {
	h := New(Config{})
	epoch, seq := h.Position()
	h.AddSnapshot(rowsSnap(1))
	s, err := h.Subscribe(epoch, seq, nil)
	if err != nil || !s.Complete || len(s.Backlog) != 1 {
		t.Fatalf("got %+v, %v; want the event since position 0", s, err)
	}
}

func TestHistoryConcurrent(t *testing.T) {
	h := New(Config{SnapshotsPerKey: 8, Keys: 3})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				s := rowsSnap(i)
				s.Slice = fmt.Sprint(g)
				h.AddSnapshot(s)
				h.AddAlert(alert(i, "r", "firing"))
				if sub, err := h.Subscribe("", 0, nil); err == nil {
					sub.Close()
				}
				for _, k := range h.Series() {
					h.Snapshots(k.SnapshotKey, 3)
				}
			}
		})
	}
	wg.Wait()
	if st := h.Totals(); st.Keys != 3 {
		t.Errorf("got %d keys, want 3", st.Keys)
	}
	if n := len(h.Alerts("m", "1", 0)); n != 200 {
		t.Errorf("got %d alerts, want 200: each once, whoever added it", n)
	}
}
