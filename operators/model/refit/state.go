package refit

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// State is the refit state of one model version.
type State struct {
	runs                    // with the publisher
	orders      [][16]byte  // the latest orders that were carried out
	quick       *quick      // the first answer; nil = no rows yet
	corrections corrections // between refits
	online      online
}

// publisher puts the calibrators of a version into force and monitors them.
type publisher struct {
	stage     *Stage
	version   *stage.Version
	revision  int                              // the latest published revision
	changes   changes                          // known changes of the stream
	unit      float64                          // largest row weight at the latest publication by a refit
	quarters  int                              // by which the bound of losses is raised, for a rare class
	pin       *pin                             // while set, only a person changes the calibrator in force
	monitor   *monitor                         // of the calibrator in force
	account   account                          // what was lost to the raw scores
	doubt     doubt                            // whether its rows were a fair sample
	delays    stage.Delays                     // of the labels of some outcomes
	withheld  int64                            // when something was withheld last because of labels; 0 = never
	counted   *stage.Key                       // what sampled returns where not all rows count; nil = the key
	countedAt int64                            // the end of the pane for which it was prepared; not saved
	countedOf int64                            // 1 more than the key's Added, if all of its rows counted; not saved
	once      bool                             // rows that repeat others count once in it; not saved
	views     int64                            // by how much its Added exceeds that of the key; not saved
	losses    map[*stage.InForce]*sampleLosses // of the sample, by calibrator; nil key = the identity; not saved
}

// NewState returns the state of a version without any refit.
func (g *Stage) NewState(v *stage.Version) *State {
	p := &publisher{stage: g, version: v}
	return &State{runs: runs{publisher: p}, corrections: corrections{publisher: p}}
}

// whole returns the key of all rows of the version.
func (p *publisher) whole() *stage.Key {
	k := p.stage.env.Whole(p.version)
	k.Delays = &p.delays
	return k
}

// sampled returns that key, to be read, with the sampled rows that count now.
func (p *publisher) sampled() *stage.Key {
	if p.counted != nil {
		return p.counted
	}
	return p.whole()
}

// count prepares sampled for the end of a pane, and returns the rows that count from then on. Rows that repeat others
// count once, where the rows before the pane show that there are such: what a row's own label decides would be no
// evidence.
func (p *publisher) count(rows []acc.SampleRow, now int64) []acc.SampleRow {
	p.countedOf = 0
	var k stage.Key
	if p.stage.env.Maturity.On() {
		rows = p.mature(now)
		k = *p.counted
		fresh := make(map[[16]byte]bool, len(rows))
		for i := range rows {
			fresh[rows[i].ID] = true
		}
		k.Sample = slices.DeleteFunc(slices.Clone(k.Sample), func(row acc.SampleRow) bool { return fresh[row.ID] })
	} else {
		p.counted = nil
		k = *p.whole()
		k.Sample = k.Sample[:max(0, len(k.Sample)-len(rows))]
	}
	weighted := func(row acc.SampleRow) bool { return row.W != k.Sample[0].W } // by 1/g, as told
	was := p.once
	p.once = false
	if !slices.ContainsFunc(k.Sample, weighted) {
		n, of := stage.Repeats(&k, math.MinInt64, stage.RepeatsLikely)
		p.once = n > 0 && float64(n) >= stage.ManyRepeats*float64(of)
	}
	if !p.once && p.views == 0 {
		return rows
	}
	k = *p.sampled()
	if p.counted == nil {
		k.Added += p.views
	}
	if p.once || was { // another sample than before: what is known of its rows begins anew
		p.views += int64(len(k.Sample))
		k.Added += int64(len(k.Sample))
	}
	if p.counted = &k; !p.once {
		return rows
	}
	var repeats map[[16]byte]bool
	k.Sample, repeats = stage.Once(k.Sample)
	return slices.DeleteFunc(slices.Clone(rows), func(row acc.SampleRow) bool { return repeats[row.ID] })
}

// recount prepares sampled for the end of a pane without rows, unless it is. Most panes of a model that is used once a
// day are such: the sample is looked through in the first of them only.
func (p *publisher) recount(now int64) {
	if p.countedAt == now {
		return
	}
	p.countedAt = now
	k := *p.whole()
	if p.countedOf != k.Added+1 || p.stage.env.Maturity.On() {
		p.count(nil, now)
		p.countedOf = k.Added + 1
	} else if p.counted != nil {
		k.Sample, k.Added = p.counted.Sample, p.counted.Added
		p.counted = &k
	}
}

// mature makes sampled that of the rows that have waited, and returns those that count from a time on.
func (p *publisher) mature(now int64) []acc.SampleRow {
	env := p.stage.env
	k := *p.whole()
	all, fresh := env.Maturity.Rows(k.Sample, pipeline.PaneIndex(now, env.Pane)-1, env.SampleRows)
	k.Sample, k.Added, k.Aged = all, int64(len(all)), true
	if p.counted != nil {
		k.Added = p.counted.Added + appended(p.counted.Sample, all)
	}
	p.counted = &k
	return fresh
}

// appended is how many rows have come at the end of a sample since it was another: all, unless those before them are
// the last of the other one.
func appended(was, now []acc.SampleRow) int64 {
	same := func(a, b acc.SampleRow) bool { return stage.CompareRows(a, b) == 0 }
	if len(was) == 0 {
		return int64(len(now))
	}
	at, found := slices.BinarySearchFunc(now, was[len(was)-1], stage.CompareRows)
	if n := at + 1; found && n <= len(was) && slices.EqualFunc(was[len(was)-n:], now[:n], same) {
		return int64(len(now) - n)
	}
	return int64(len(now))
}

// changes are prediction times from which rows were unlike those before, ascending.
type changes []int64

// keptChanges is the number of changes that are remembered.
const keptChanges = 8

// latest returns the prediction time from which rows are like those of now; 0 = not known.
func (c changes) latest() int64 {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1]
}

func (c *changes) note(since int64) {
	*c = append(*c, max(since, c.latest()))
	*c = (*c)[max(0, len(*c)-keptChanges):]
}

// Revision returns the latest published revision; 0 = none.
func (p *publisher) Revision() int { return p.revision }

// Online returns the online Platt scaling part of a snapshot; nil before the first row.
func (s *State) Online() *record.Online {
	return s.online.now().shown(s.corrections.served.at(math.MaxInt64, s.version.Newest()))
}

// Step processes all rows of a version at the end of a label pane. It tests the calibrator in force, continues the
// current run, and decides whether to begin one.
func (s *State) Step(in *stage.Pane) error {
	counted := *in
	counted.Rows = s.count(in.Rows, in.End)
	if s.countedAt = in.End; len(counted.Rows) == 0 {
		return StepEmpty(s, &counted)
	}
	in = &counted
	rows, err := s.corrections.scored(in)
	if err != nil {
		return err
	}
	s.online.step(rows, s.whole().IsNew())
	if err := s.corrections.learn(rows); err != nil {
		return err
	}
	if err := recalibrate(s, in); err != nil {
		return err
	}
	s.corrections.charge(in, rows)
	return s.corrections.serve(in)
}

// recalibrate is what may change the calibrator in force: one step at most does.
func recalibrate(s *State, in *stage.Pane) error {
	if err := watchRare(s, in); err != nil {
		return err
	}
	for _, step := range []func(*State, *stage.Pane) (changed bool, err error){stepAccount, stepRollback, stepQuick} {
		if changed, err := step(s, in); err != nil || changed {
			return err
		}
	}
	return s.stepRefit(in)
}

// stepRollback is stepMonitor, with what a rollback means for the current run and the first answer.
func stepRollback(s *State, in *stage.Pane) (rolled bool, err error) {
	rolled, err = s.stepMonitor(in)
	if err != nil || !rolled {
		return rolled, err
	}
	if s.run.busy() { // its canary would be served on, whatever takes force for all
		err = s.end("the calibrator that it was to replace was rolled back", in.End)
	}
	if err == nil && s.quick != nil && s.stage.cfg.answersFirst() {
		err = s.quick.learn(s.sampled(), len(in.Rows)) // the next pane is forecast by what has shown the change
	}
	return true, err
}

func isIdentity(c calibrator.Calibrator) bool {
	_, ok := c.(calibrator.Identity)
	return ok
}

// Untouched reports whether nothing was ever decided about the version.
func Untouched(s *State) bool {
	return s.revision == 0 && s.run == nil && s.pin == nil && len(s.orders) == 0 && s.version.Decision.Record == nil
}

// ChangeClasses drops what was learnt with another number of classes. If the calibrator in force is not one for the new
// number, the identity takes its place.
func (s *State) ChangeClasses(why string, now int64) error {
	v := s.version
	if Untouched(s) {
		*s = *s.stage.NewState(v)
		return nil
	}
	if err := s.Forget(why, now); err != nil {
		return err
	}
	s.quarters = 0
	old := v.Newest()
	v.Calibrators = slices.DeleteFunc(v.Calibrators, func(f *stage.InForce) bool {
		return !calibrator.Fits(f.Cal, v.K)
	})
	if old == nil || v.Newest() == old {
		return nil
	}
	encoded, err := calibrator.Encode(calibrator.Identity{})
	if err != nil {
		return err
	}
	d := record.Calibrator{Reason: reasonClasses, Outcome: "published: the identity: " + why, Method: "identity",
		Replaces: old.Revision}
	err = s.putInForce(&d, calibrator.Identity{}, encoded, now)
	s.monitor = nil // what could be rolled back to is of the other number
	return err
}

// TellClasses publishes which number of classes the version has, for the shards and the history. The record has a key
// of its own on the compacted topic. It belongs to no ledger: what was counted does not depend on it.
func (p *publisher) TellClasses(d *record.Calibrator, now int64) error {
	v := p.version
	d.Schema, d.Model, d.Version, d.Build, d.Reason = 1, v.Model, v.Name, p.stage.deps.Build, reasonClasses
	d.State = record.DecidedClasses
	d.Revision, d.DecidedAt, d.EffectiveFrom = p.revision, record.At(now), record.At(now)
	m, err := pipeline.NewMessage(pipeline.StreamCalibrators, v.Model+"/"+v.Name+"/"+reasonClasses, now, d)
	if err != nil {
		return fmt.Errorf("record of the number of classes: %w", err)
	}
	p.stage.env.Emit(nil, m)
	return nil
}

// Forget ends the current run and drops what was learnt about a version that is out of service. The revision, the
// calibrators in force, pins and orders stay.
func (s *State) Forget(why string, now int64) error {
	s.count(nil, now)
	if s.run != nil {
		if err := s.end(why, now); err != nil {
			return err
		}
	}
	s.quick, s.monitor, s.online, s.losses, s.counted = nil, nil, online{}, nil, nil
	return s.corrections.end(now)
}
