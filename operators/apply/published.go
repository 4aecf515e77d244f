package apply

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/inforce"
	"github.com/plumbline/plumbline/pipeline"
)

// Published holds the calibrators that shards apply, by model version and effective time. It is filled from the
// compacted calibrators topic and read by every shard.
type Published struct {
	mu       sync.RWMutex
	by       map[arrowio.ModelKey][]*Serving // the newest keptRevisions, by revision, the newest first
	canaries map[arrowio.ModelKey]*Serving   // the latest, ended or not
	tops     map[arrowio.ModelKey][]*topped  // the newest keptRevisions, by time, the newest first
	last     map[string]string               // model → the version that was published last
	changed  chan struct{}                   // closed and replaced by every publication
	late     pipeline.Time                   // how late rows come; 0 = any
	added    int                             // publications since forget looked at all
}

// Serving is a calibrator with the rows that it serves.
type Serving struct {
	inforce.Period
	Calibrator calibrator.Calibrator
	Top        *Top     // the correction that is part of it; nil = none
	base       *Serving // that the correction is on top of
}

// topped is a correction of a revision. serving is what the two are together; nil where the
// correction has ended, or its calibrator is not known.
type topped struct {
	Top
	serving *Serving
}

// Top is a correction of a revision, from an event time on.
type Top struct {
	Revision   int
	From       pipeline.Time
	Correction calibrator.Correction
}

// NewPublished returns an empty table. It forgets calibrators that only rows later than late would ask for; 0 = none.
func NewPublished(late pipeline.Time) *Published {
	return &Published{late: late, by: map[arrowio.ModelKey][]*Serving{}, canaries: map[arrowio.ModelKey]*Serving{},
		tops: map[arrowio.ModelKey][]*topped{}, last: map[string]string{}, changed: make(chan struct{})}
}

// Publication is the content of a record of the calibrators topic.
type Publication struct {
	Revision int
	From     pipeline.Time // event time from which it is in force
	Encoded  []byte        // as calib/calibrator wrote it; empty: the end of a canary
	Canary   bool
	Share    float64 // of the ids, for a canary
}

// Put adds a calibrator, or begins or ends a canary. A revision that is there already is replaced.
func (p *Published) Put(m arrowio.ModelKey, pub Publication) error {
	if pub.Canary && len(pub.Encoded) == 0 {
		p.endCanary(m, pub.From)
		return nil
	}
	cal, err := calibrator.Decode(pub.Encoded)
	if err != nil {
		return fmt.Errorf("calibrator %s/%s revision %d: %w", m.Model, m.Version, pub.Revision, err)
	}
	f := &Serving{
		Period: inforce.Period{Revision: pub.Revision, From: pub.From, Share: pub.Share}, Calibrator: cal}
	if pub.Canary && !(pub.Share > 0) {
		return fmt.Errorf("canary %s/%s: share %g, must be above 0", m.Model, m.Version, pub.Share)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pub.Canary {
		p.canaries[m] = f
		return nil
	}
	close(p.changed)
	p.changed = make(chan struct{})
	// Readers hold no lock while they use an entry: the list is replaced, never edited in place.
	list := slices.Clone(p.by[m])
	i, there := slices.BinarySearchFunc(list, f.Revision, func(x *Serving, revision int) int {
		return cmp.Compare(revision, x.Revision)
	})
	if there {
		list[i] = f
	} else {
		list = slices.Insert(list, i, f)
		if i == 0 { // an older one may have been forgotten, and come again
			p.last[m.Model] = m.Version
		}
	}
	p.by[m] = list[:min(len(list), keptRevisions)]
	defer p.forget()
	return p.correctAgain(m)
}

// Correct adds a correction. One of the same time is replaced.
func (p *Published) Correct(m arrowio.ModelKey, top Top) error {
	if err := top.Correction.Check(); err != nil {
		return fmt.Errorf("correction of %s/%s revision %d: %w", m.Model, m.Version, top.Revision, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	list := slices.Clone(p.tops[m])
	i, there := slices.BinarySearchFunc(list, top.From, func(x *topped, from pipeline.Time) int {
		return cmp.Compare(from, x.From)
	})
	if there {
		list[i] = &topped{Top: top}
	} else {
		list = slices.Insert(list, i, &topped{Top: top})
	}
	p.tops[m] = list[:min(len(list), keptRevisions)]
	defer p.forget()
	return p.correctAgain(m)
}

// correctAgain puts corrections on top of their calibrators, whichever came first.
func (p *Published) correctAgain(m arrowio.ModelKey) error {
	list := slices.Clone(p.tops[m])
	for i, t := range list {
		base := p.revision(m, t.Revision)
		if base == nil || t.serving != nil && t.serving.base == base {
			continue
		}
		both, err := calibrator.Correct(base.Calibrator, t.Correction)
		if err != nil {
			return err
		}
		list[i] = &topped{t.Top, &Serving{Period: inforce.Period{Revision: t.Revision, From: t.From},
			Calibrator: both, Top: &t.Top, base: base}}
	}
	p.tops[m] = list
	return nil
}

var identity = &Serving{Calibrator: calibrator.Identity{}}

// revision is a calibrator of a version; nil if it is not known.
func (p *Published) revision(m arrowio.ModelKey, revision int) *Serving {
	if revision == 0 {
		return identity
	}
	for _, f := range p.by[m] {
		if f.Revision == revision {
			return f
		}
	}
	return nil
}

// corrected is what serves a row at a time where f is in force; nil is the identity.
func (v *View) corrected(f *Serving, ts pipeline.Time, k int) *Serving {
	revision := 0
	if f != nil {
		revision = f.Revision
	}
	for _, t := range v.tops {
		if t.From <= ts && t.Revision == revision {
			if t.serving != nil && calibrator.Fits(t.serving.Calibrator, k) {
				return t.serving
			}
			return f
		}
	}
	return f
}

// keptRevisions is how many calibrators of a model version rows may still ask for: late ones those that were in force
// at their event time. A process that starts has the newest only, as the topic is compacted.
const keptRevisions = 64

// forget drops what no row asks for whose event time is at most late before the newest publication of its model. So a
// version that is out of service is left with its newest calibrator, which it needs if it comes back. A process that
// starts has no more of any version: the topic is compacted.
func (p *Published) forget() {
	if p.added++; p.late == 0 || p.added < keptRevisions+len(p.by) { // so that a publication pays for one list only
		return
	}
	p.added = 0
	before := map[string]pipeline.Time{} // model → the earliest event time of rows
	for m, list := range p.by {
		before[m.Model] = max(before[m.Model], list[0].From-p.late)
	}
	for m, list := range p.tops {
		if len(list) > 0 {
			before[m.Model] = max(before[m.Model], list[0].From-p.late)
		}
	}
	for m, list := range p.by {
		var kept []*Serving
		for i, f := range list {
			if !replaced(f, list[:i], before[m.Model]) {
				kept = append(kept, f)
			}
		}
		p.by[m] = kept
	}
	for m, list := range p.tops {
		later := map[int]bool{} // revisions with a later correction for all rows
		p.tops[m] = slices.DeleteFunc(slices.Clone(list), func(t *topped) bool {
			gone := later[t.Revision] || t.serving != nil && p.revision(m, t.Revision) == nil
			later[t.Revision] = later[t.Revision] || t.From <= before[m.Model]
			return gone
		})
	}
	for m, f := range p.canaries {
		if f.Until != 0 && f.Until <= before[m.Model] {
			delete(p.canaries, m)
		}
	}
}

// replaced reports whether all rows from an event time on that f could serve have one of newer ones.
func replaced(f *Serving, newer []*Serving, from pipeline.Time) bool {
	k := calibrator.ClassesOf(f.Calibrator)
	return slices.ContainsFunc(newer, func(x *Serving) bool {
		n := calibrator.ClassesOf(x.Calibrator)
		return x.From <= from && (n == 0 || n == k)
	})
}

// endCanary ends a canary at an event time. It stays in force for earlier rows, which may still come.
func (p *Published) endCanary(m arrowio.ModelKey, until pipeline.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.canaries[m]; f != nil && f.Until == 0 && until > f.From {
		ended := *f
		ended.Until = until
		p.canaries[m] = &ended
	}
}

// Latest is the newest calibrator of a model version.
type Latest struct {
	Version    string
	Revision   int
	From       pipeline.Time // event time from which it is in force
	Calibrator calibrator.Calibrator
	Top        *Top // its newest correction; nil = none
	// Canary calibrates Share of the ids (arrowio.InShare); nil where there is none.
	Canary calibrator.Calibrator
	Share  float64
}

// Newest returns the newest calibrator of a model version, and a channel that is closed when anything is published.
// Version "" is that of the model's latest publication. ok is false where there is none.
func (p *Published) Newest(m arrowio.ModelKey) (l Latest, changed <-chan struct{}, ok bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if m.Version == "" {
		m.Version = p.last[m.Model]
	}
	l.Version = m.Version
	if list := p.by[m]; len(list) > 0 && list[0].Revision > 0 {
		l.Revision, l.From, l.Calibrator = list[0].Revision, list[0].From, list[0].Calibrator
	}
	for _, t := range p.tops[m] {
		if t.Revision == l.Revision {
			if l.Top = &t.Top; l.Revision == 0 {
				l.Calibrator = calibrator.Identity{}
			}
			break
		}
	}
	if f := p.canaries[m]; f != nil && f.Until == 0 {
		l.Canary, l.Share = f.Calibrator, f.Share
	}
	return l, p.changed, l.Calibrator != nil
}

// View is what is published of a model version at one moment.
type View struct {
	by     []*Serving
	tops   []*topped
	canary *Serving
}

// Now returns what is published of a model version now. It stays as it is.
func (p *Published) Now(m arrowio.ModelKey) *View {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return &View{p.by[m], p.tops[m], p.canaries[m]}
}

// At returns the calibrator for a row of k classes by its event time and the hash of its id. One of another K, which
// only a foreign writer of the topic can have put there, is skipped.
func (v *View) At(ts pipeline.Time, k int, id arrowio.ID) *Serving {
	if f := v.canary; f != nil && calibrator.Fits(f.Calibrator, k) && f.Serves(ts, id) {
		return f
	}
	// By revision, not as they came: a process that was away may write an older one after a newer.
	for _, f := range v.by {
		if f.From <= ts && calibrator.Fits(f.Calibrator, k) {
			return v.corrected(f, ts, k)
		}
	}
	return v.corrected(nil, ts, k)
}
