package history

import (
	"encoding/json"
	"sync"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Config bounds a History; a zero field means the default in its comment. The memory is at most about
// Snapshots·(3 KB + DetailedPerKey/SnapshotsPerKey·5 KB), with 15 bins and CDF and soft bins on.
type Config struct {
	// 16384 (model, version, slice, window) keys; the one longest without news goes first
	Keys int
	// 360 snapshots of a key; fewer where all keys together would have more than Snapshots, but one at least
	SnapshotsPerKey int
	Snapshots       int // 92160 of all keys
	// 60 newest keep soft bins, CDF and the calibrator's bins; older ones their numbers and diagrams
	DetailedPerKey int
	// 4096 (model, version) pairs with alerts and calibrators; longest without news goes first
	Models              int
	AlertsPerModel      int // 256
	CalibratorsPerModel int // 128
	Backlog             int // 1024 latest events, for subscribers that come back
	Subscribers         int // 64
	// 1024 events may wait for a subscriber; then snapshots replace those of their series. With as many more as Keys it
	// is dropped
	SubscriberBuffer int
}

func (c *Config) defaults() {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&c.Keys, 16384)
	def(&c.Snapshots, 256*360)
	def(&c.SnapshotsPerKey, 360)
	def(&c.DetailedPerKey, 60)
	def(&c.Models, 4096)
	def(&c.AlertsPerModel, 256)
	def(&c.CalibratorsPerModel, 128)
	def(&c.Backlog, 1024)
	def(&c.Subscribers, 64)
	def(&c.SubscriberBuffer, 1024)
}

// SnapshotKey names one series of snapshots; Window is the window's name.
type SnapshotKey struct{ Model, Version, Slice, Window string }

type modelKey struct{ model, version string }

// History keeps the latest output records in bounded memory, for the page and the API. Records are shared with
// the caller and must not be changed after they were added. Safe for concurrent use; adding never blocks on a reader.
type History struct {
	cfg Config

	mu     sync.RWMutex
	series lru[SnapshotKey, *series]
	models lru[modelKey, *decisions]
	shares shares
	bus    bus
	stats  Stats
	kept   int // snapshots of all series
}

// Stats counts what did not fit or could not be kept.
type Stats struct {
	Keys          int    `json:"keys"`
	Snapshots     int    `json:"snapshots"`
	EvictedKeys   uint64 `json:"evicted_keys"`
	EvictedModels uint64 `json:"evicted_models"`
	// records that were there already, or older than what replaced them
	Repeats            uint64 `json:"repeats"`
	BadTimes           uint64 `json:"bad_times"`           // records whose time is not RFC 3339
	DroppedSubscribers uint64 `json:"dropped_subscribers"` // too slow
	MovedTasks         int    `json:"moved_tasks"`         // of models that other processes have
}

// series is the ring of one snapshot key. Invariant: sorted by x, one entry for each x.
type series struct {
	kind string
	ring []stored
}

type stored struct {
	x, at int64 // x identifies the window: its end for kind "time", else the pane's end
	snap  *record.Snapshot
}

// decisions are the rings of one (model, version). Invariant: sorted by time.
type decisions struct {
	alerts      []timed[*record.Alert]
	calibrators []timed[*record.Calibrator]
	// current is the last state of every (slice, rule) that is not resolved.
	current map[[2]string]timed[*record.Alert]
}

type timed[T any] struct {
	at  int64
	rec T
}

// New returns an empty History.
func New(cfg Config) *History {
	cfg.defaults()
	return &History{
		cfg:    cfg,
		series: newLRU[SnapshotKey, *series](),
		models: newLRU[modelKey, *decisions](),
		bus:    newBus(cfg),
	}
}

// AddSnapshot keeps s. A time window is revised as its labels come: the snapshot with the latest At stands.
// A repeat, or an older revision, changes nothing.
func (h *History) AddSnapshot(s record.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addSnapshot(&s)
}

// AddPast keeps s if there is its series with a newer window: subscribers hear of it as of others. What is newer than
// all that the tasks know is of a state that was given up, and they will come to it again. What is much larger than the
// newest is no task's: whoever may write to the topic must not fill the memory.
func (h *History) AddPast(s *record.Snapshot) {
	size := encodedSize(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	sr, found := h.series.peek(SnapshotKey{s.Model, s.Version, s.Slice, s.Window.Name})
	if !found {
		return
	}
	newest := sr.ring[len(sr.ring)-1]
	if newest.x > momentOf(s).UnixNano() && size <= pastSize*encodedSize(newest.snap) {
		h.addSnapshot(s)
	}
}

// pastSize is how many times as large as the newest of its series a snapshot of before may be: a window that has no
// calibrator yet has fewer metrics.
const pastSize = 4

func encodedSize(s *record.Snapshot) int {
	b, _ := json.Marshal(s) // what was decoded can be encoded
	return len(b)
}

// momentOf is what tells the snapshots of a series apart.
func momentOf(s *record.Snapshot) record.Time {
	if s.Window.Kind == "time" {
		return s.Window.End
	}
	return s.At
}

func (h *History) addSnapshot(s *record.Snapshot) {
	x := momentOf(s)
	if s.At.IsZero() || x.IsZero() {
		h.stats.BadTimes++
		return
	}
	k := SnapshotKey{s.Model, s.Version, s.Slice, s.Window.Name}
	sr, found := h.series.get(k)
	if !found {
		sr = &series{}
		h.putSeries(k, sr)
	}
	sr.kind = s.Window.Kind
	before := len(sr.ring)
	added := sr.add(stored{x.UnixNano(), s.At.UnixNano(), s}, h.share())
	if h.kept += len(sr.ring) - before; !added {
		h.stats.Repeats++
		return
	}
	h.publish("snapshot", s.Model, s.Version, s)
}

// share is what each key may have: all keys have as much, so that new ones cannot push others out.
func (h *History) share() Config {
	c := h.cfg
	if n := len(h.series.m); n*c.SnapshotsPerKey > c.Snapshots {
		c.SnapshotsPerKey = max(1, c.Snapshots/n)
		c.DetailedPerKey = max(1, c.DetailedPerKey*c.SnapshotsPerKey/h.cfg.SnapshotsPerKey)
	}
	return c
}

// putSeries adds a series. Where the history is full, those that have more than their share are cut, beginning with the
// one longest without news.
func (h *History) putSeries(k SnapshotKey, sr *series) {
	if len(h.series.m) >= h.cfg.Keys {
		h.kept -= len(h.series.order.Back().Value.(lruEntry[SnapshotKey, *series]).val.ring)
	}
	h.stats.EvictedKeys += h.series.put(k, sr, h.cfg.Keys)
	c := h.share()
	for e := h.series.order.Back(); e != nil && h.kept >= c.Snapshots; e = e.Prev() {
		h.kept -= e.Value.(lruEntry[SnapshotKey, *series]).val.cut(c)
	}
}

// cut drops the oldest snapshots beyond a key's share, and the detail of those beyond the detailed ones.
func (sr *series) cut(c Config) (dropped int) {
	if dropped = len(sr.ring) - c.SnapshotsPerKey; dropped <= 0 {
		return 0
	}
	sr.ring = append([]stored(nil), sr.ring[dropped:]...)
	for i := range max(0, len(sr.ring)-c.DetailedPerKey) {
		sr.ring[i].snap = trim(sr.ring[i].snap)
	}
	return dropped
}

// add inserts e in order, trims the ring and strips entries past the detailed ones; false for a repeat.
func (sr *series) add(e stored, cfg Config) bool {
	i := len(sr.ring)
	for i > 0 && sr.ring[i-1].x > e.x {
		i--
	}
	if i > 0 && sr.ring[i-1].x == e.x {
		if sr.ring[i-1].at >= e.at {
			return false
		}
		i--
		sr.ring[i] = e
	} else {
		if i == 0 && len(sr.ring) >= cfg.SnapshotsPerKey {
			return false
		}
		before := len(sr.ring) + 1
		sr.ring = insert(sr.ring, i, e, cfg.SnapshotsPerKey)
		i -= before - len(sr.ring)
	}
	// The entry that just left the detailed ones, and e itself where it came late, give up their detail.
	old := len(sr.ring) - 1 - cfg.DetailedPerKey
	for _, j := range []int{old, i} {
		if j >= 0 && j <= old {
			sr.ring[j].snap = trim(sr.ring[j].snap)
		}
	}
	return true
}

// AddAlert keeps a. A repeat (the same slice, rule, state and time) is no event.
func (h *History) AddAlert(a record.Alert) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.At.IsZero() {
		h.stats.BadTimes++
		return
	}
	d := h.decisionsOf(modelKey{a.Model, a.Version})
	same := func(b *record.Alert) bool {
		return b.At == a.At && b.Slice == a.Slice && b.Rule == a.Rule && b.State == a.State
	}
	added := addTimed(&d.alerts, timed[*record.Alert]{a.At.UnixNano(), &a}, same, h.perModel(h.cfg.AlertsPerModel))
	d.setCurrent(&a, h.cfg.Keys) // a repeat too: the model's task may be back in this process
	if !added {
		h.stats.Repeats++
		return
	}
	h.publish("alert", a.Model, a.Version, &a)
}

// setCurrent follows the latest state of a's rule; at most limit rules are followed, further ones are in the ring only.
func (d *decisions) setCurrent(a *record.Alert, limit int) {
	id, at := [2]string{a.Slice, a.Rule}, a.At.UnixNano()
	for i := len(d.alerts) - 1; i >= 0 && d.alerts[i].at >= at; i-- {
		b := d.alerts[i].rec
		if b.Slice != a.Slice || b.Rule != a.Rule {
			continue
		}
		if d.alerts[i].at > at || b.State != a.State {
			return // a came late: a newer state of the rule is known
		}
		break
	}
	now, found := d.current[id]
	switch {
	case found && now.at > at: // newer than the ring remembers
	case a.State == "resolved":
		delete(d.current, id)
	case found || len(d.current) < limit:
		d.current[id] = timed[*record.Alert]{at, a}
	}
}

// AddCalibrator keeps the refit decision c. A repeat (the same time, revision, order, reason, outcome, person and
// why) changes nothing.
func (h *History) AddCalibrator(c record.Calibrator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.DecidedAt.IsZero() {
		h.stats.BadTimes++
		return
	}
	d := h.decisionsOf(modelKey{c.Model, c.Version})
	same := func(b *record.Calibrator) bool {
		if b.DecidedAt != c.DecidedAt || b.Revision != c.Revision || b.Published != c.Published || b.Order != c.Order {
			return false
		}
		return c.Published || b.Reason == c.Reason && b.Outcome == c.Outcome &&
			b.By == c.By && b.Why == c.Why // a person may pin and unpin within one pane
	}
	e := timed[*record.Calibrator]{c.DecidedAt.UnixNano(), &c}
	if !addTimed(&d.calibrators, e, same, h.perModel(h.cfg.CalibratorsPerModel)) {
		h.stats.Repeats++
		return
	}
	h.publish("calibrator", c.Model, c.Version, &c)
}

// perModel is how many of n records each model version may have: fewer than n where there are more versions than
// usual.
func (h *History) perModel(n int) int {
	const usual, least = 128, 8
	return max(min(n, least), min(n, n*usual/max(1, len(h.models.m))))
}

func (h *History) decisionsOf(k modelKey) *decisions {
	d, ok := h.models.get(k)
	if !ok {
		d = &decisions{current: map[[2]string]timed[*record.Alert]{}}
		h.stats.EvictedModels += h.models.put(k, d, h.cfg.Models)
	}
	return d
}

func (h *History) publish(kind, model, version string, rec any) {
	h.stats.DroppedSubscribers += h.bus.publish(Event{Type: kind, Model: model, Version: version, Record: rec})
}

// addTimed inserts e after all entries that are not later; false if same holds for an entry or e is older than a full
// ring.
func addTimed[T any](ring *[]timed[T], e timed[T], same func(T) bool, limit int) bool {
	i := len(*ring)
	for i > 0 && (*ring)[i-1].at > e.at {
		i--
	}
	for j := i - 1; j >= 0 && (*ring)[j].at == e.at; j-- {
		if same((*ring)[j].rec) {
			return false
		}
	}
	if i == 0 && len(*ring) >= limit {
		return false
	}
	*ring = insert(*ring, i, e, limit)
	return true
}

// insert puts e at i and drops the first entries until at most limit are left.
func insert[E any](s []E, i int, e E, limit int) []E {
	s = append(s, e)
	copy(s[i+1:], s[i:])
	s[i] = e
	if drop := len(s) - limit; drop > 0 {
		copy(s, s[drop:])
		clear(s[limit:])
		s = s[:limit]
	}
	return s
}

// Slim returns s without bins, soft bins and CDF, sharing the rest.
func Slim(s *record.Snapshot) *record.Snapshot {
	c := trim(s)
	c.Raw.Bins, c.Calibrated.Bins = nil, nil
	return c
}

// trim returns s with the bins of its raw and calibrated metrics only: no soft bins, no CDF, no other bins.
func trim(s *record.Snapshot) *record.Snapshot {
	c := *s
	c.Raw.SoftBins, c.Raw.CDF, c.Calibrated.SoftBins, c.Calibrated.CDF = nil, nil, nil, nil
	strip := func(m *record.Metrics) { m.Bins, m.SoftBins, m.CDF = nil, nil, nil }
	if c.Served != nil {
		m := *c.Served
		strip(&m)
		c.Served = &m
	}
	if c.InForce != nil {
		f := *c.InForce
		strip(&f.Raw)
		strip(&f.Calibrated)
		c.InForce = &f
	}
	return &c
}
