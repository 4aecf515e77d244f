package join

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

//go:embed join.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the wait of predictions for labels.
type Config struct {
	// Event time that a prediction waits: the longest delay of a label, even weeks.
	Wait time.Duration `yaml:"wait" default:"1h"`
	// Waiting rows of a shard. When full, the oldest goes out and is counted.
	MaxRows int `yaml:"max_rows" default:"10_000_000" min:"1" max:"1_000_000_000"`
	// About the most memory of a shard for the latest of them; the others are on disk. 0: all are in memory.
	MemoryBytes int `yaml:"memory_bytes" default:"32MiB" min:"0" max:"1TiB"`
	// Directory for those on disk, of no use after a restart. Empty: work in checkpoints.dir; where that is on a
	// network, name a local directory.
	Dir string `yaml:"dir"`
	// Labelled rows of a shard whose ids are known until join.wait is over (50 bytes each). Repeats of them and further
	// labels are counted and change nothing. 0: a repeat counts as new.
	Remember int `yaml:"remember" default:"1_000_000" min:"0" max:"1_000_000_000"`
}

// Options has the configuration and the settings of the process. Dir must be set; files go to a directory in it whose
// name begins with Name.
type Options struct {
	Config
	Slices []string // configured slice columns, in order
	Name   string
	// FeatureBytes is the size of a kept feature: float16 (2) or float32 (4). Joined rows then have the features of
	// their prediction. 0: none are kept.
	FeatureBytes int

	SegmentBytes int // of a test; 0 = the store's default
	minShrink    int // of a test; 0 = minShrink
}

// maxOfID bounds the entries of one id, versions and labels together; further ones count as evicted. Each row is
// compared with all entries of its id, and senders choose the ids.
const maxOfID = 64

// Operator keeps predictions until their label comes, and labels until their prediction comes. A label joins every
// waiting prediction of its id (of its model, where it names one), and the first label wins; one for a prediction
// that has joined already is a correction, which is counted and changes nothing. With one prediction and one label of
// an id, whether they join depends on event times alone, so it does not matter which topic is read first. Arrival
// matters in two cases: the bounds on rows, when they are hit (what they push out is counted), and several versions
// under one id with labels that name no version, until such an id is seen (buffer.sharedAt).
type Operator struct {
	cfg         Options
	out         *pipeline.Out
	counts      *pipeline.Counts
	w           buffer
	labelled    // what has joined in the current batch
	origin      arrowio.Origin
	joined      int64   // rows that joined in the current batch
	met         int64   // labels that joined in the current batch
	corrections int64   // labels of the current batch that were corrections
	match       []int32 // labels that fit the current prediction
	waiting     waitingCounts
}

// New returns the operator. Close it where MemoryBytes is set.
func New(cfg Options, h pipeline.Host) *Operator {
	j := &Operator{cfg: cfg, out: h.Out, counts: h.Counts, waiting: waitingCounts{counts: h.Counts},
		labelled: labelled{columns: cfg.Slices, build: map[groupKey]*builder{}}}
	j.w.log = h.Log
	j.w.reset(&j.cfg)
	return j
}

// Process implements pipeline.Operator: predictions pass on, joined rows follow as Labelled batches.
func (j *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	var err error
	rejects := pipeline.Rejects(b.Reject)
	j.origin, j.w.looked = b.Origin, 0
	if b.Kind == arrowio.Labels {
		err = j.labels(b, emit)
	} else if b, err = j.predictions(b); err == nil {
		rejects, err = emit(b)
	}
	if err == nil {
		err = j.flush(emit)
	}
	if err == nil {
		err = j.w.spill()
	}
	bound(&j.w.memory)
	j.waiting.publish(j.w.n)
	return rejects, err
}

func (j *Operator) labels(b *arrowio.Batch, emit pipeline.Emit) error {
	if b.IDs == nil || b.Label == nil {
		return fmt.Errorf("labels batch without id or label column passed the decoder")
	}
	n := int64(0)
	for i := 0; i < b.N; i++ {
		if !b.Good(i) {
			continue
		}
		look(&j.w, b, i)
		if met, err := meetRun(j, b, i); err != nil {
			return err
		} else if met > 0 {
			j.w.forget()
			n += int64(met)
			i += met - 1
			continue
		}
		n++
		if err := j.w.recall(b.IDs[i]); err != nil {
			return err
		}
		key, named := b.ModelOf(i)
		met, corrects, others, err := j.meet(b, i, key, named)
		if err != nil {
			return err
		}
		switch {
		case met:
			if j.met++; others < maxOfID && stays(&j.w, b, i) {
				j.w.serve(letWait(&j.w, b, i))
			}
		case others < maxOfID:
			j.keep(b, i, corrects)
		default:
			j.counts.Add(pipeline.CountEvicted, 1)
			j.counts.Add(pipeline.CountEvictedLabels, 1)
		}
		if err := j.settle(); err != nil {
			return err
		}
		if j.features > maxBuilt { // a label is small, the features of its prediction are not
			if err := j.flush(emit); err != nil {
				return err
			}
		}
	}
	j.counts.Add(pipeline.CountLabels, n)
	return nil
}

// meet joins label i with every waiting prediction that it fits. If none waits, corrects tells whether one that it
// fits has joined already, and n how many rows its id has.
func (j *Operator) meet(b *arrowio.Batch, i int, key arrowio.ModelKey, named bool) (met, corrects bool, n int,
	err error) {
	e := foundAhead(&j.w.memory, b, i)
	if e < 0 {
		e = j.w.first(&b.IDs[i])
	}
	for e >= 0 {
		next := j.w.after(e)
		p := &j.w.entries[e]
		n++
		if p.label < 0 && (!named || labelFits(key, j.w.models[p.model])) && j.cfg.inTime(p.ts, b.TS[i]) {
			met = true
			if b.Label[i] >= p.k {
				j.rejectLabel(b, i, int(p.k))
			} else if err := j.pair(e, b.TS[i], b.Label[i]); err != nil {
				return met, false, n, err
			}
		}
		e = next
	}
	if met {
		return met, false, n, nil
	}
	for _, m := range j.w.joinedOf(&b.IDs[i]) {
		n++
		corrects = corrects || (!named || labelFits(key, arrowio.ModelKey(m.Key))) && j.cfg.inTime(m.TS, b.TS[i])
	}
	return met, corrects, n, nil
}

// keep lets a label wait, unless it is a correction that no other version's prediction could use.
func (j *Operator) keep(b *arrowio.Batch, i int, correction bool) {
	if key, named := b.ModelOf(i); correction && named && key.Version != "" {
		j.corrections++
		return
	}
	e := letWait(&j.w, b, i)
	if correction {
		j.serve(e, true)
	}
}

// letWait adds label i to what waits.
func letWait(w *buffer, b *arrowio.Batch, i int) (e int32) {
	w.waits = true
	e = w.add(b.IDs[i], false)
	key, named := b.ModelOf(i)
	w.setLabel(e, b.TS[i], b.Label[i], key, named)
	return e
}

// stays reports whether label i waits on once it has joined: another model version of its id may be read later.
func stays(w *buffer, b *arrowio.Batch, i int) bool {
	if w.sharedAt == noShared || b.TS[i] > w.sharedAt+int64(w.cfg.Wait) {
		return false
	}
	key, _ := b.ModelOf(i) // none: no version either
	return key.Version == ""
}

// settle, called after each row, drops the copies of rows on disk and evicts rows beyond the bounds.
func (j *Operator) settle() error {
	j.w.release()
	j.w.forget()
	return j.evict()
}

// labelFits reports whether a label for key l fits predictions of p: it may leave out the version, or both.
func labelFits(l, p arrowio.ModelKey) bool {
	return (l.Model == "" || l.Model == p.Model) && (l.Version == "" || l.Version == p.Version)
}

// rejectLabel rejects a label whose range could be checked only against its prediction; its record is dead-lettered.
func (j *Operator) rejectLabel(b *arrowio.Batch, i, k int) {
	j.counts.AddReason(pipeline.CountRejected, arrowio.LabelRange, 1)
	j.counts.Add(pipeline.CountRejectedJoins, 1)
	j.out.Reject(i, arrowio.LabelRange, fmt.Sprintf("label: %d; allowed are 0 to %d", b.Label[i], k-1))
}

// inTime reports whether a label comes before the wait of its prediction is over.
func (c *Config) inTime(prediction, label pipeline.Time) bool {
	return label-prediction <= int64(c.Wait)
}

// pair moves waiting prediction e, now labelled, to the batch of its model version.
func (j *Operator) pair(e int32, labelTS pipeline.Time, label int32) error {
	p := &j.w.entries[e]
	gk := groupKey{p.model, int(p.k), p.probs, int(p.d)}
	j.groupOf(gk, j.w.models).add(&j.w, e, labelTS, label)
	j.features += 4 * gk.d
	j.joined++
	return j.w.join(e)
}

func (j *Operator) flush(emit pipeline.Emit) error {
	if err := j.emit(j.origin, emit); err != nil {
		return err
	}
	j.counts.Add(pipeline.CountJoined, j.joined)
	j.counts.Add(pipeline.CountMet, j.met)
	j.counts.Add(pipeline.CountCorrections, j.corrections)
	j.joined, j.met, j.corrections = 0, 0, 0
	return nil
}

// evict removes the oldest entries while more wait than allowed. A label that has joined is not counted as lost.
func (j *Operator) evict() error {
	for j.w.n.bounded() > j.cfg.MaxRows {
		_, label, used, _, err := j.w.oldestOf()
		if err != nil {
			return err
		}
		if !used {
			j.counts.Add(pipeline.CountEvicted, 1)
			if label {
				j.counts.Add(pipeline.CountEvictedLabels, 1)
			}
		}
		j.w.removeOldest()
	}
	return nil
}

// Advance implements pipeline.Operator. Rows that have waited too long leave, in order of arrival.
func (j *Operator) Advance(_ context.Context, wm pipeline.Time, _ pipeline.Emit) error {
	err := j.expire(wm)
	if j.w.compact() {
		j.dropBuilders() // keyed by the old indices
	}
	j.w.shrink()
	if j.w.store != nil {
		j.w.store.Shrink()
	}
	j.waiting.publish(j.w.n)
	return err
}

func (j *Operator) expire(wm pipeline.Time) error {
	j.w.forgetBefore(wm - int64(j.cfg.Wait))
	for {
		ts, label, used, ok, err := j.w.oldestOf()
		if !ok || err != nil || ts+int64(j.cfg.Wait) >= wm {
			return err
		}
		switch {
		case used:
		case label:
			j.counts.Add(pipeline.CountOrphans, 1)
		default:
			j.counts.Add(pipeline.CountExpired, 1)
		}
		j.w.removeOldest()
	}
}

// waitingCounts publishes how many rows wait.
type waitingCounts struct {
	counts *pipeline.Counts
	said   tally // what the counts say
}

func (c *waitingCounts) publish(n tally) {
	if d := n.predictions - c.said.predictions; d != 0 {
		c.counts.Add(pipeline.CountWaiting, int64(d))
	}
	if d := n.labels - c.said.labels; d != 0 {
		c.counts.Add(pipeline.CountWaitingLabels, int64(d))
	}
	c.said = n
}

// restored takes note of what the counts say after they were restored.
func (c *waitingCounts) restored() {
	n := c.counts.All()
	c.said = tally{predictions: int(n[pipeline.CountWaiting]), labels: int(n[pipeline.CountWaitingLabels])}
}
