package model

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Each shard learns the number of classes K of a model version from its own messages, and until then sends the rows of
// every K. A version has statistics of one K: the one with predictions in the most label panes. Cells of other K are
// held. If another K overtakes, the version starts again with the cells of that K, as if the others had never come. The
// settled K is published, and all shards follow. From then on, or after settledPanes, only a person changes K.

// settledPanes is the number of label panes with predictions after which K stands.
const settledPanes = 30

// maxRivals is the number of further K of which cells are held.
const maxRivals = 4

// Counts of versions whose rows had several K.
const (
	CountClasses        = "classes_changed"
	CountDroppedClasses = "classes_dropped" // predictions of a K that is not the version's
)

// claim is what of a version has had one K.
type claim struct{ panes, rows int64 }

// contest is who may have a version's K.
type contest struct {
	own     claim
	settled bool
	rivals  map[int]*rival
	dropped map[int]int64 // predictions that were dropped, by their K
}

// rival is a K that differs from the version's, with its cells by slice.
type rival struct {
	claim
	shape   acc.Config
	inboxes map[string]*inbox
}

func newRival(shape acc.Config, k int) (*rival, error) {
	shape, err := shapeOf(shape, k)
	return &rival{shape: shape, inboxes: map[string]*inbox{}}, err
}

// put keeps a cell until its label pane is processed: in the inboxes of its version, which is created if needed, or
// in those of another K.
func (f *fleet) put(m *model, pane int64, c *pipeline.Cell, late bool) (rows int64, err error) {
	v, err := f.versionOf(m, c.Version, c.K)
	if err != nil {
		return 0, err
	}
	if c.K == v.K {
		return v.put(pane, c, late, &f.cfg)
	}
	cell, of, err := receive(c.Set)
	if err != nil {
		return 0, err
	}
	r := v.contest.rivals[c.K]
	if r == nil && (v.contest.settled || len(v.contest.rivals) >= maxRivals) {
		if c.Slice == "" {
			v.contest.drop(f.counts, c.K, cell.predictions)
		}
		return 0, nil
	}
	if r == nil {
		if r, err = newRival(f.cfg.Acc, c.K); err != nil {
			return 0, err
		}
	}
	if err := sumconfig.Check(of, r.shape); err != nil || !f.cfg.Slices.has(c.Slice) {
		return 0, err
	}
	if v.contest.rivals == nil {
		v.contest.rivals = map[int]*rival{}
		f.log.Warn("rows of a model version have different numbers of classes", "model", v.Model, "version", v.Name,
			"classes", v.K, "others", c.K)
	}
	v.contest.rivals[c.K] = r
	return cell.rows(), inboxIn(r.inboxes, c.Slice).put(pane, c.PredictionPane, cell, cell.late(late))
}

// drop counts predictions of another K.
func (c *contest) drop(counts *pipeline.Counts, k int, predictions int64) {
	if predictions == 0 {
		return
	}
	if c.dropped == nil {
		c.dropped = map[int]int64{}
	}
	if _, known := c.dropped[k]; known || len(c.dropped) < 2*maxRivals {
		c.dropped[k] += predictions
	}
	counts.Add(CountDroppedClasses, predictions)
}

// dropHeld counts the predictions of a K up to a label pane, and those that wait for later ones.
func (c *contest) dropHeld(counts *pipeline.Counts, k int, r *rival, pane int64) {
	n := r.rows
	if b := r.inboxes[""]; b != nil {
		for later := range b.pending {
			if later > pane {
				n += b.predictions(later)
			}
		}
	}
	c.drop(counts, k, n)
}

// settle lets K stand, and drops what is held of other numbers of classes.
func (c *contest) settle(counts *pipeline.Counts, pane int64) {
	c.settled = true
	for k, r := range sorted(c.rivals) {
		c.dropHeld(counts, k, r, pane)
	}
	c.rivals = nil
}

// predictions of a pane that the inboxes of a K have.
func (r *rival) predictions(pane int64) int64 {
	if b := r.inboxes[""]; b != nil {
		return b.predictions(pane)
	}
	return 0
}

// nextPane returns the first label pane from next on, before first, for which another K has cells.
func (c *contest) nextPane(next, first int64) int64 {
	for _, r := range c.rivals {
		for _, b := range r.inboxes {
			first = b.firstFrom(next, first)
		}
	}
	return first
}

func (c *claim) add(predictions int64) {
	if predictions > 0 {
		c.panes++
		c.rows += predictions
	}
}

// compare puts the better claim first: more label panes, then more rows. It does not say who came first, because that
// depends on how the messages of shards interleave.
func (c *claim) compare(o *claim) int {
	return cmp.Or(-cmp.Compare(c.panes, o.panes), -cmp.Compare(c.rows, o.rows))
}

// reconcileAll decides, before a label pane is processed, which K the versions have.
func (f *fleet) reconcileAll(m *model, pane int64) error {
	for name, v := range sorted(m.versions) {
		if v.contest.settled && len(v.contest.rivals) == 0 {
			continue
		}
		if err := (&stepper{f, v}).reconcile(pane); err != nil {
			return fmt.Errorf("model %s version %q: %w", m.name, name, err)
		}
	}
	return nil
}

func (t *stepper) reconcile(pane int64) error {
	v, c := t.version, &t.contest
	processed := c.own.panes > 0
	if k := v.keys[""]; k != nil {
		c.own.add(k.predictions(pane))
	}
	best, claimed := v.K, &c.own
	for k, r := range sorted(c.rivals) {
		r.add(r.predictions(pane))
		if better := r.claim.compare(claimed); better < 0 || better == 0 && k < best {
			best, claimed = k, &r.claim
		}
	}
	if best != v.K {
		was, own := v.K, c.own
		if err := t.overtake(best, pane, processed); err != nil || !processed {
			return err
		}
		return t.settle(pane, fmt.Sprintf("K = %d from now on, not %d: predictions of it are in %d label panes, of %d "+
			"in %d; what was counted with the latter is dropped", v.K, was, c.own.panes, was, own.panes))
	}
	if c.own.panes < settledPanes {
		return nil
	}
	if len(c.rivals) == 0 {
		c.settled = true
		return nil
	}
	return t.settle(pane, fmt.Sprintf("K = %d stands: predictions of it are in %d label panes; those of another K are "+
		"dropped", v.K, c.own.panes))
}

// overtake gives the version another K. If label panes were processed with the K that it had, their statistics end, and
// the cells that were held are processed in their place.
func (t *stepper) overtake(k int, pane int64, processed bool) error {
	c := &t.contest
	winner := c.rivals[k]
	delete(c.rivals, k)
	loser := &rival{claim: c.own, shape: t.Shape, inboxes: t.inboxes()}
	was := t.K
	if err := t.changeClasses(k, pane*t.cfg.Pane); err != nil {
		return err
	}
	c.own = winner.claim
	if processed {
		t.counts.Add(CountClasses, 1)
		c.dropHeld(t.counts, was, loser, pane)
	} else {
		c.rivals[was] = loser
	}
	if err := t.version.adopt(winner.inboxes, &t.cfg); err != nil {
		return err
	}
	return t.catchUp(pane)
}

// adopt takes over the cells of a K that was a rival.
func (v *version) adopt(inboxes map[string]*inbox, cfg *Config) error {
	for _, name := range slices.Sorted(maps.Keys(inboxes)) {
		for _, pane := range slices.Sorted(maps.Keys(inboxes[name].pending)) {
			if err := inboxes[name].move(pane, v.inboxOf(name, cfg)); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUp processes the label panes of cells that were held, up to a pane that is next.
func (t *stepper) catchUp(until int64) error {
	for at := t.firstPending(until); at < until; {
		if err := t.step(at); err != nil {
			return err
		}
		if at++; !t.open() {
			at = max(at, t.firstPending(until))
		}
	}
	return nil
}

// open reports whether label panes without rows matter to a key of the version.
func (v *version) open() bool {
	for _, k := range v.keys {
		if k.open() {
			return true
		}
	}
	return false
}

// firstPending is the first label pane before a pane that has cells, or that pane.
func (v *version) firstPending(until int64) int64 {
	for _, k := range v.keys {
		until = k.firstFrom(minPane, until)
	}
	for _, b := range v.pendingSlices {
		until = b.firstFrom(minPane, until)
	}
	return until
}

// changeClasses drops the statistics and decisions of the version's K and starts with another K. The number of
// revisions, the pin and the orders stay.
func (t *stepper) changeClasses(k int, now int64) error {
	v := t.version
	why := fmt.Sprintf("K = %d from now on, not %d: statistics begin anew; %s", k, v.K, errorUnknown)
	for _, key := range sorted(v.keys) {
		key.wake(t.fleet)
		t.alert.End(&key.Key, key.EndAlerts(why), now)
	}
	shape, err := shapeOf(t.cfg.Acc, k)
	if err != nil {
		return err
	}
	v.keys, v.heavy, v.pendingSlices = map[string]*keyState{}, map[string]*slice.Counts{}, map[string]*inbox{}
	v.K, v.Shape, v.last, v.idle = k, shape, minPane, 0
	t.models[v.Model].heads.Forget(v.Name)
	return v.refit.ChangeClasses(why, now)
}

// settle lets K stand, drops the cells of others, and tells all shards.
func (t *stepper) settle(pane int64, why string) error {
	v := t.version
	v.contest.settle(t.counts, pane)
	t.log.Warn("the number of classes of a model version is settled", "model", v.Model, "version", v.Name, "classes",
		v.K, "why", why)
	return v.refit.TellClasses(&record.Calibrator{Outcome: "classes: " + why, Classes: v.K}, pane*t.cfg.Pane)
}

// orderClasses carries out an order about K.
func (t *stepper) orderClasses(o *pipeline.Order, pane int64) error {
	v, now := t.version, pane*t.cfg.Pane
	if k := t.cfg.Classes[v.Model]; k > 0 && k != o.Classes {
		return t.refits.Refuse(o, now, fmt.Sprintf("the configuration declares K = %d for the model (models)", k))
	}
	if !v.refit.Accept(o) {
		return nil
	}
	if o.Classes != v.K {
		k := o.Classes
		was, own := v.K, t.contest.own
		if t.contest.rivals == nil {
			t.contest.rivals = map[int]*rival{}
		}
		if t.contest.rivals[k] == nil {
			t.contest.rivals[k] = &rival{inboxes: map[string]*inbox{}}
		}
		if err := t.overtake(k, pane, true); err != nil {
			return err
		}
		t.log.Warn("statistics begin anew with another number of classes", "model", v.Model, "version", v.Name, "was",
			was, "rows", own.rows)
	}
	v.contest.settle(t.counts, pane)
	return v.refit.TellClasses(&record.Calibrator{Outcome: fmt.Sprintf("classes: K = %d by %s", v.K, o.By),
		Classes: v.K, By: o.By, Why: o.Why, Order: hex.EncodeToString(o.ID[:])}, now)
}

// classesSection is the checkpoint section of the numbers of classes: by model and version whether K stands, panes and
// rows of it, predictions dropped by K, and of each other K panes, rows and cells that are held.
func (f *fleet) classesSection() *versionSection {
	return &versionSection{
		of:      f,
		what:    "classes",
		append:  func(dst []byte, v *version) []byte { return v.contest.append(dst) },
		restore: func(r *binenc.Reader, v *version) error { return v.contest.restore(r, f.cfg.Acc) },
	}
}

func (c *contest) append(dst []byte) []byte {
	dst = append(dst, binenc.Flags(c.settled))
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, c.own.panes), c.own.rows)
	dst = binenc.AppendUvarint(dst, uint64(len(c.dropped)))
	for k, rows := range sorted(c.dropped) {
		dst = binenc.AppendVarint(binenc.AppendUvarint(dst, uint64(k)), rows)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(c.rivals)))
	for k, r := range sorted(c.rivals) {
		dst = binenc.AppendVarint(binenc.AppendVarint(binenc.AppendUvarint(dst, uint64(k)), r.panes), r.rows)
		dst = binenc.AppendUvarint(dst, uint64(len(r.inboxes)))
		for name, cells := range sorted(r.inboxes) {
			dst = cells.appendPending(binenc.AppendString(dst, name))
		}
	}
	return dst
}

func (c *contest) restore(r *binenc.Reader, shape acc.Config) error {
	*c = contest{settled: r.Byte() == 1, own: claim{r.Varint(), r.Varint()}}
	for range r.Count(2, 2*maxRivals) {
		if c.dropped == nil {
			c.dropped = map[int]int64{}
		}
		k := int(r.Int("classes", 2, 1<<30))
		c.dropped[k] = r.Varint()
	}
	for range r.Count(4, maxRivals+1) {
		x, err := newRival(shape, int(r.Int("classes", 2, 1<<30)))
		if err != nil {
			return err
		}
		x.claim = claim{r.Varint(), r.Varint()}
		if c.rivals == nil {
			c.rivals = map[int]*rival{}
		}
		c.rivals[x.shape.K] = x
		for range r.Count(2, binenc.MaxItems) {
			name, b := r.String(binenc.MaxName), newInbox(nil)
			if err := b.restorePending(r, x.shape); err != nil {
				return err
			}
			x.inboxes[name] = &b
		}
	}
	return r.Err()
}
