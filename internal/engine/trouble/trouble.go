// Package trouble says aloud what a deployment loses: records that are refused, labels that meet no prediction,
// requests that meet no response, and logits that look like probabilities. Of each there is at most one warning a
// minute in the log, and a banner on the page for as long as it lasts, with an example and what mends it. It sees what
// tasks say; it must not decide anything.
package trouble

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/pipeline"
)

// Issue is a lasting loss of input, shown on the page with its remedy.
type Issue struct {
	Kind  string    `json:"kind"` // refused | apart | pairs | waits | scores
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Mend  string    `json:"mend"`
	Count int64     `json:"count"` // records, or labels of the last minute
	Since time.Time `json:"since"` // wall clock
	Last  time.Time `json:"last"`

	logged time.Time
	unsaid int64 // since the line before
}

// Periods of the wall clock.
const (
	lasts     = 10 * time.Minute // a trouble is shown after its last example
	every     = time.Minute      // between two lines
	maxShown  = 20
	looked    = 10 * time.Second // between two looks at the joins
	leastSeen = 50               // labels that say something
	mended    = 5                // labels, most of which met their prediction, that end a trouble of few labels
	aDay      = 24 * time.Hour   // between two lines about few labels; after it the latest are no news
)

// Watch collects the issues of a process.
type Watch struct {
	Log   *slog.Logger
	Keyed atomic.Bool   // producers have to send rows by their ids
	Wait  time.Duration // join.wait
	// Blind reports whether some input cannot be read now: that rows do not meet is due to that then. nil: never.
	Blind func() bool

	mu    sync.Mutex
	by    map[string]*Issue
	joins []joins // of the last minute
	few   fewLabels
}

// fewLabels are labels of which too few come in a minute to say something.
type fewLabels struct {
	since joins     // when those that are judged next began to come
	apart joins     // what those before showed, if they met nothing
	last  time.Time // when one came
}

// joins has the join counts of all shards at one time.
type joins struct {
	at                          time.Time
	predictions, labels, joined int64
	waiting, waitingLabels      int64 // now
	orphans, expired            int64 // labels, predictions that waited in vain
	paired, alone               int64 // requests that met a response; requests or responses that met none
}

// Refused takes note of a record that is refused, or has rows that are.
func (w *Watch) Refused(r *pipeline.Record, reason, detail string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trouble("refused/"+r.Topic+"/"+reason, now)
	t.Count++
	t.unsaid++
	if t.Title != "" && now.Sub(t.logged) < every {
		return
	}
	place := fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)
	if topic, partition, offset, ok := pipeline.SourceOf(r.Headers); ok {
		place = printable.Text(fmt.Sprintf("%s/%d/%d (its part %s)", topic, partition, offset, place))
	}
	t.Kind, t.Title, t.Mend = "refused", "Records are refused: "+reason, mend(reason)
	t.Text = printable.Text(fmt.Sprintf("%s at %s: %s", reason, place, detail))
	w.Log.Warn("records are refused, wholly or some of their rows: they are in the dead-letter topic", "reason", reason,
		"records", t.unsaid, "example", place, "detail", printable.Text(detail), "mend", t.Mend)
	t.logged, t.unsaid = now, 0
}

// Softmax takes note of a model version whose logits are probabilities, as it seems.
func (w *Watch) Softmax(key arrowio.ModelKey) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trouble("scores/"+key.Model+"/"+key.Version, now)
	t.Kind, t.Count = "scores", 1
	t.Title = printable.Text(fmt.Sprintf("Logits of %s %s look like probabilities", key.Model, key.Version))
	t.Text = "each row that was looked at is in [0, 1] and sums to 1; as logits they say that the model is far less " +
		"sure than it is"
	t.Mend = "send them as probs"
	if now.Sub(t.logged) >= every {
		w.Log.Warn("logits look like probabilities", "model", key.Model, "version", key.Version, "mend", t.Mend)
		t.logged = now
	}
}

// Waits takes note of a record whose schema cannot be had now: its partition waits, and nothing is lost.
func (w *Watch) Waits(r *pipeline.Record, err error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trouble("waits/"+r.Topic, now)
	t.Kind, t.Title, t.Count = "waits", "Records of "+r.Topic+" wait for their schema", 1
	t.Text = printable.Text(fmt.Sprintf("%s/%d/%d: %v", r.Topic, r.Partition, r.Offset, err))
	t.Mend = "start the schema registry, or correct schema_registry in the configuration; no record is lost meanwhile"
	if now.Sub(t.logged) >= every {
		w.Log.Warn("the schema of a record cannot be had: its partition waits", "topic", r.Topic, "partition",
			r.Partition, "offset", r.Offset, "err", err, "mend", t.Mend)
		t.logged = now
	}
}

// trouble returns the issue of a key, starting it if needed.
func (w *Watch) trouble(key string, now time.Time) *Issue {
	t := w.by[key]
	if t == nil || now.Sub(t.Last) > lasts {
		t = &Issue{Since: now.UTC().Truncate(time.Second)}
		if w.by == nil {
			w.by = map[string]*Issue{}
		}
		w.by[key] = t
	}
	t.Last = now.UTC().Truncate(time.Second)
	return t
}

// mend returns the remedy for a reason.
func mend(reason string) string {
	if reason != "not_arrow" && strings.HasPrefix(reason, "not_") { // of any format of inputs
		reason = "schema"
	}
	switch reason {
	case "not_arrow":
		return "records that are no Arrow need their format: see Inputs in docs/schema.md"
	case "schema", "column_missing", "column_type", "model_missing", "shape":
		return "compare inputs in the configuration with the record, which plumbline deadletters shows: Inputs in " +
			"docs/schema.md"
	case "too_large", "inflates":
		return "send shorter texts, or fewer rows at a time; if the whole record has too many bytes, " +
			"kafka.message_max_bytes and kafka.fetch_max_bytes can be raised: docs/schema.md, What is refused"
	case "label_range", "classes":
		return "labels and scores must be of one number of classes: docs/schema.md, What is refused"
	case "too_far_ahead", "record_ahead", "ts_range", "control":
		return "compare the clocks and the unit of ts: docs/schema.md, What is refused"
	}
	return "plumbline deadletters shows them; docs/schema.md, What is refused, has the reasons"
}

// Look takes note of how labels meet predictions, by the statuses of the shards here.
func (w *Watch) Look(tasks []*pipeline.TaskStatus) {
	now := joins{at: time.Now()}
	for _, t := range tasks {
		now.predictions += t.Counts[pipeline.CountPredictions]
		now.labels += t.Counts[pipeline.CountLabels] - t.Counts[pipeline.CountDuplicates] -
			t.Counts[pipeline.CountCorrections]
		now.joined += t.Counts[pipeline.CountJoined]
		now.waiting += t.Counts[pipeline.CountWaiting]
		now.waitingLabels += t.Counts[pipeline.CountWaitingLabels]
		now.orphans += t.Counts[pipeline.CountOrphans]
		now.expired += t.Counts[pipeline.CountExpired]
		now.paired += t.Counts[pipeline.CountPaired]
		for name, n := range t.Counts {
			if head, _, _ := strings.Cut(name, ":"); head == pipeline.CountResponsesAlone ||
				head == pipeline.CountRequestsUnmet {
				now.alone += n
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now.at)
	if w.Blind != nil && w.Blind() {
		w.joins, w.few = nil, fewLabels{}
		delete(w.by, "apart")
		delete(w.by, "pairs")
		return
	}
	w.joins = append(w.joins, now)
	for len(w.joins) > 1 && now.at.Sub(w.joins[0].at) > every+looked {
		w.joins = w.joins[1:]
	}
	first := w.joins[0]
	w.pairs(now.paired-first.paired, now.alone-first.alone, now.at)
	d := now.since(first)
	if d.labels < leastSeen || now.predictions < leastSeen {
		w.meet(w.slowly(now), now.at, aDay)
		return
	}
	w.few = fewLabels{since: now}
	if d.joined*5 >= d.labels*4 || d.unmet(now)*2 < d.labels-d.joined {
		delete(w.by, "apart")
		return
	}
	w.meet(d, now.at, every)
}

// since returns what came after an earlier time.
func (j joins) since(was joins) joins {
	return joins{at: was.at, labels: j.labels - was.labels, joined: j.joined - was.joined,
		waiting: j.waiting - was.waiting, waitingLabels: j.waitingLabels - was.waitingLabels,
		orphans: j.orphans - was.orphans, expired: j.expired - was.expired}
}

// unmet returns how many labels have come since that meet nothing.
func (j joins) unmet(now joins) int64 {
	// Where few predictions wait, and most that were read have met their label, other labels were read before theirs;
	// unless predictions had to go while hardly a label met one: those of a batch come together, after its time.
	if now.waiting*2 >= now.waitingLabels || j.waiting*2 >= j.joined ||
		j.joined*10 < j.labels && j.expired*2 >= j.labels-j.joined {
		return j.orphans + j.waitingLabels
	}
	return j.orphans
}

// slowly judges labels of which fewer than leastSeen come in a minute by as many, however long they take. It returns
// what the latest so many showed if hardly one of them met its prediction, else no labels. Until predictions have
// waited in vain, labels that wait say nothing: those of predictions from before the deployment come first.
func (w *Watch) slowly(now joins) joins {
	f := &w.few
	d := now.since(f.since)
	gone := min(d.labels, d.joined, d.orphans, d.expired) < 0 // tasks came or went
	if now.predictions < leastSeen || f.since.at.IsZero() || gone {
		*f = fewLabels{since: now}
		return joins{}
	}
	if before := w.joins[max(0, len(w.joins)-2)]; now.labels != before.labels {
		f.last = now.at
	}
	unmet := d.orphans
	if d.expired > 0 {
		unmet = d.unmet(now)
	}
	over := now.at.Sub(f.last) > aDay || d.joined >= mended && d.joined*2 >= d.labels
	switch {
	case d.labels < leastSeen && !over:
		return f.apart
	case d.labels < leastSeen:
		f.apart = joins{}
	case d.joined*10 < d.labels && unmet*2 >= d.labels:
		f.since, f.apart = now, d
	default:
		f.since, f.apart = now, joins{}
	}
	if f.apart.labels == 0 {
		delete(w.by, "apart")
	}
	return f.apart
}

// meet says that labels meet no predictions, in the log not sooner than a time after the line before.
func (w *Watch) meet(d joins, at time.Time, again time.Duration) {
	if d.labels == 0 {
		return
	}
	t := w.trouble("apart", at)
	t.Kind, t.Title, t.Count = "apart", "Labels meet no predictions", d.labels-d.joined
	t.Text = fmt.Sprintf("of the last %d labels %d have met their prediction; %d predictions waited for join.wait, "+
		"%v, in vain", d.labels, max(d.joined, 0), max(d.expired, 0), w.Wait)
	t.Mend = fmt.Sprintf(`compare the ids of both ("7" and 7 differ), or run plumbline doctor; a label that comes `+
		`more than join.wait, %v, after its prediction meets none: raise it to the longest delay. Send rows of the `+
		`past with their labels: they wait for none`, w.Wait)
	if w.Keyed.Load() {
		t.Mend += "; shards read the topics themselves: every row must go to the partition of its id"
	}
	if at.Sub(t.logged) >= again {
		w.Log.Warn("labels meet no predictions", "labels", d.labels, "met", d.joined, "expired", d.expired, "mend",
			t.Mend)
		t.logged = at
	}
}

// pairs takes note of how requests met responses in the last minute.
func (w *Watch) pairs(paired, alone int64, at time.Time) {
	if alone < leastSeen || alone < paired/4 {
		if paired >= leastSeen {
			delete(w.by, "pairs")
		}
		return
	}
	t := w.trouble("pairs", at)
	t.Kind, t.Title, t.Count = "pairs", "Requests and responses do not meet", alone
	t.Text = fmt.Sprintf("in the last minute %d requests met their response, and %d requests or responses met none",
		paired, alone)
	t.Mend = "compare ids, models and numbers of rows of both (inputs.columns, inputs.request.columns); does the " +
		"model server log requests, too? Responses without their request count without its features and slices"
	if at.Sub(t.logged) >= every {
		w.Log.Warn("requests and responses do not meet", "met", paired, "unmet", alone, "mend", t.Mend)
		t.logged = at
	}
}

// Run looks until done is closed.
func (w *Watch) Run(done <-chan struct{}, tasks func() []*pipeline.TaskStatus) {
	tick := time.NewTicker(looked)
	defer tick.Stop()
	w.Look(nil) // what comes before the next look counts, too
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			w.Look(tasks())
		}
	}
}

// forget drops the troubles that are over: of model versions there is no end of new ones.
func (w *Watch) forget(now time.Time) {
	maps.DeleteFunc(w.by, func(_ string, t *Issue) bool { return now.Sub(t.Last) > lasts })
}

// Now are the troubles that last, the latest first, those by which nothing is lost last.
func (w *Watch) Now() []Issue {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Issue
	w.forget(time.Now())
	for _, t := range w.by {
		out = append(out, *t)
	}
	lost := func(t *Issue) int {
		if t.Kind == "scores" {
			return 1
		}
		return 0
	}
	slices.SortFunc(out, func(a, b Issue) int {
		return cmp.Or(lost(&a)-lost(&b),
			b.Last.Compare(a.Last), cmp.Compare(a.Title, b.Title), cmp.Compare(a.Text, b.Text))
	})
	return out[:min(len(out), maxShown)]
}
