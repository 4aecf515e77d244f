package refit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Between two refits the probabilities may follow the outcomes, on top of the calibrator in force: a power of all of
// them, which is a temperature, and then online Platt scaling of the top confidence, each of several speeds. It is the
// quick and small part of calibration. It needs no proof, unlike a calibrator: it keeps every row's class, it begins
// anew with every calibrator, and an account bounds what it loses to that. Without one, a stream that turns as fast as
// corrections come would be followed to the wrong side for ever. The tests of a refit and the alarms look at the
// calibrators below it, and know nothing of it.

const (
	// followStep is the mean change of the probabilities of a pane's rows, in total variation, at which a new
	// correction is published.
	followStep = .002
	// followMost is the most that a row counts.
	followMost = 400
	// orderedRows is the most rows of a pane whose order teaches nothing: all memories are far longer.
	orderedRows = 10
)

// corrections are those of a version: what was served, what is learnt, and what rows lost. They know by the publisher
// what is in force, and leave that as it is.
type corrections struct {
	*publisher
	served    servedCorrections
	following *following // what is learnt on top of the calibrator in force; nil = nothing
	cost      account    // of what rows lost to the calibrators below
}

// following is what is learnt on top of a calibrator.
type following struct {
	base   int     // revision of the calibrator
	powers *powers // nil with two classes: there a power is a slope
	speeds *speeds
	apart  apart
	served calibrator.Correction
	moved  float64 // Σ |change of the probabilities| of the latest pane's rows, if what has been learnt were served
	rows   int     // of the latest pane
}

var uncorrected = calibrator.Correction{Power: 1, TopCorrection: calibrator.TopCorrection{Slope: 1}}

// now is what has been learnt.
func (f *following) now() calibrator.Correction {
	return calibrator.Correction{Power: f.powers.mean(), TopCorrection: f.speeds.top(), Apart: f.apart.byClass()}
}

func newFollowing(base, k int) (*following, error) {
	of := followed
	if k > 2 {
		of = slower
	}
	s, err := newSpeeds(of)
	return &following{base: base, powers: newPowers(k), speeds: s, served: uncorrected}, err
}

// followable reports whether a calibrator may be corrected: not where it says of rows that
// nothing is known of them, and not where labels are yet to confirm it.
func followable(f *stage.InForce) bool {
	if f == nil {
		return true
	}
	switch f.Cal.(type) {
	case *calibrator.MetaCal, *calibrator.ClassWeights:
		return false
	}
	return true
}

// servedCorrections are the corrections that were served, in their order.
type servedCorrections []servedCorrection

// servedCorrection is a correction from an event time on, of rows that a revision calibrates.
type servedCorrection struct {
	from       int64
	base       int
	correction calibrator.Correction
}

// keptCorrections bounds the corrections that late rows are scored by.
const keptCorrections = 1024

// at is the correction of a row that f calibrates; from is 0 where there is none.
func (t servedCorrections) at(ts int64, f *stage.InForce) servedCorrection {
	base := 0
	if f != nil {
		base = f.Revision
	}
	for _, x := range slices.Backward(t) {
		if x.from <= ts && x.base == base {
			return x
		}
	}
	return servedCorrection{correction: uncorrected}
}

// forgetBefore drops the corrections that no row needs any more. All rows before ts have come.
func (t *servedCorrections) forgetBefore(ts int64) {
	n := max(0, len(*t)-keptCorrections)
	for n+1 < len(*t) && (*t)[n+1].from <= ts {
		n++
	}
	*t = slices.Delete(*t, 0, n)
}

// followedRow is a sampled row as the calibrator of its time scores it, and as the correction of its time told it.
type followedRow struct {
	q, z       []float64 // by the calibrator, and the LogRatios of that where k > 2
	y          int
	conf, told float64 // the largest of q, and what was told of it
	hit        bool
	class      int // predicted
	by         *stage.InForce
	ts         int64
	w          float64 // in units of rowWeights.one, at most followMost
	lost       float64 // NLL as told less that by the calibrator alone, by weight
}

// rowWeights is the scale of the row weights, by the latest sampled rows: one is the weight of a row that counts as
// one, and the most is what a row may count in the account.
//
//	one = Σw²/Σw
//
// So the memory holds as many effective rows (Kish) as without weights; with the mean weight, few heavy rows would be
// followed into their noise. With equal weights it is their weight, whatever that is.
type rowWeights struct{ one, most float64 }

func weightsOf(rows []acc.SampleRow) rowWeights {
	var sum, squares, most float64
	for i := range rows {
		w := float64(rows[i].W)
		sum, squares, most = sum+w, squares+w*w, max(most, w)
	}
	if !(squares > 0) {
		return rowWeights{1, 1}
	}
	return rowWeights{squares / sum, most}
}

// byLabel is the order in which labels came. By prediction time a pane's last rows are those with quick labels, which
// may be those of wrong rows: what follows the newest rows would be taught in every pane that these are wrong.
func byLabel(a, b acc.SampleRow) int {
	return cmp.Or(cmp.Compare(a.LabelTS, b.LabelTS), slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.TS, b.TS))
}

// scored are the rows of a pane, where probabilities follow them.
func (c *corrections) scored(in *stage.Pane) ([]followedRow, error) {
	if !c.stage.cfg.Follow || len(in.Rows) == 0 {
		return nil, nil
	}
	k := c.version.K
	rows := in.Rows
	if len(rows) > orderedRows && !c.stage.env.Maturity.On() && stage.OutcomesDelay(c.sampled()) {
		rows = slices.Clone(rows)
		slices.SortFunc(rows, byLabel)
	}
	out, sc, bound := make([]followedRow, len(rows)), stage.NewScorer(k), c.bound()
	all, told := make([]float64, 2*len(rows)*k), make([]float64, k)
	weights := weightsOf(c.sampled().Sample)
	for i := range rows {
		row := &rows[i]
		var cal calibrator.Calibrator
		f := c.version.At(row.TS, row.ID)
		if f != nil {
			cal = f.Cal
		}
		r, err := sc.Row(cal, row, math.Inf(1))
		if err != nil {
			return nil, err
		}
		x := followedRow{q: all[2*i*k:][:k], y: int(row.Y), hit: r.Hit, class: r.Class, by: f, ts: row.TS,
			conf: min(r.Confidence, 1), w: min(float64(row.W)/weights.one, followMost)} // rounded
		sc.Probs(x.q)
		if k > 2 { // with two classes no power is learnt
			x.z = all[(2*i+1)*k:][:k]
			calibrator.LogRatios(x.z, x.q)
		}
		x.told = x.conf
		if served := c.served.at(row.TS, f).correction; !served.None() {
			copy(told, x.q)
			served.ApplyRatios(told, x.z)
			x.told = min(told[r.Class], 1)
			lost := min(bound, -kernel.LogProb(told[x.y])) - min(bound, r.NLL)
			x.lost = min(float64(row.W)/weights.most, 1) * lost
		}
		out[i] = x
	}
	return out, nil
}

// charge keeps the account: what rows lost by being corrected. Where that is too much, corrections end and rest.
func (c *corrections) charge(in *stage.Pane, rows []followedRow) {
	a := &c.cost
	a.pass(in.Rows)
	for i := range rows {
		r := &rows[i]
		if r.ts >= a.since {
			a.lost += r.lost
		}
	}
	if a.lost > accountLimit {
		a.begin(in.End, &c.stage.cfg)
	}
}

// learn learns from the rows that the calibrator in force has served. Those of earlier calibrators are left out: the
// one in force may have been fitted on them.
func (c *corrections) learn(rows []followedRow) error {
	t, newest, k := c.following, c.version.Newest(), c.version.K
	if t == nil || len(rows) == 0 {
		return nil
	}
	for i := range rows {
		if rows[i].by == newest {
			if err := t.learn(rows[i], k); err != nil {
				return err
			}
		}
	}
	t.apart.settle(sync.OnceValue(func() bool { return unmixed(k, c.sampled().Sample) == "" }))
	now := t.now()
	t.moved, t.rows = 0, 0
	p, served := make([]float64, k), make([]float64, k)
	for i := range rows {
		r := &rows[i]
		if r.by != newest {
			continue
		}
		copy(p, r.q)
		copy(served, r.q)
		now.ApplyRatios(p, r.z)
		t.served.ApplyRatios(served, r.z)
		change := totalVariation(p, served)
		if now.Has(r.class) || t.served.Has(r.class) { // few rows would never move the mean
			change *= fewRows
		}
		t.moved += change
		t.rows++
	}
	return nil
}

// learn learns from the outcome of a row: powers first, then the correction of its class or the one of all.
func (f *following) learn(r followedRow, k int) error {
	if f.powers != nil {
		r.conf = f.powers.update(r.q, r.z, r.y, r.w)
	}
	apart, err := f.apart.take(&r, f.speeds, k)
	if err != nil || apart {
		return err
	}
	return f.speeds.update(r.conf, r.hit, r.w)
}

func totalVariation(p, q []float64) (d float64) {
	for k := range p {
		d += math.Abs(p[k]-q[k]) / 2
	}
	return d
}

// serve publishes what has been learnt, once it is something else than what is served. With a new revision
// there is nothing to take back: it is served without the correction of the one before. While labels are of a biased
// sample of the rows that it served, nothing is served or learnt.
func (c *corrections) serve(in *stage.Pane) error {
	base, t, f := c.version.InForceRevision(), c.following, c.version.Newest()
	if !c.stage.cfg.Follow || c.pin != nil || c.cost.resting() || !followable(f) {
		return c.end(in.End)
	}
	since := int64(math.MinInt64)
	if f != nil {
		since = f.From
	}
	biased, err := stage.Biased(c.sampled(), since, stage.SettledInOrder)
	switch {
	case err != nil:
		return err
	case biased != "":
		if t.serves(base) {
			const ends = "the corrections of the probabilities between refits end"
			if err := c.withhold(ends, biased, in.End); err != nil {
				return err
			}
		}
		return c.end(in.End)
	case t == nil || t.base != base:
		c.following, err = newFollowing(base, c.version.K)
		return err
	case !(t.moved > followStep*float64(t.rows)):
		return nil
	}
	t.served, t.moved = t.now(), 0
	c.served.forgetBefore(in.End - c.stage.env.FinalAfter)
	return c.publish(t.served, t.speeds.rows(), in.End)
}

// serves reports whether a correction of a revision is served.
func (f *following) serves(revision int) bool {
	return f != nil && !f.served.None() && f.base == revision
}

// end takes back the correction that is served, and forgets what was learnt.
func (c *corrections) end(now int64) error {
	t := c.following
	if c.following = nil; !t.serves(c.version.InForceRevision()) {
		return nil
	}
	return c.publish(uncorrected, 0, now)
}

// publish publishes a correction that has followed so many rows, and keeps it.
func (c *corrections) publish(of calibrator.Correction, rows, now int64) error {
	t := servedCorrection{now, c.version.InForceRevision(), of}
	c.served = append(c.served, t)
	m, err := t.message(c.version, rows)
	if err != nil {
		return err
	}
	c.whole().Chain(m)
	c.stage.env.Emit(nil, m)
	return nil
}

// message is the record of a correction that has followed so many rows.
func (t *servedCorrection) message(v *stage.Version, rows int64) (pipeline.Message, error) {
	c := t.correction
	var apart []record.ClassCorrection
	for _, x := range c.Apart {
		apart = append(apart, record.ClassCorrection{Class: x.Class, Slope: x.Slope, Intercept: x.Intercept})
	}
	m, err := pipeline.NewMessage(pipeline.StreamTops, v.Model+"/"+v.Name+"/"+record.StageTop, t.from,
		&record.TopCorrection{Schema: 1, Model: v.Model, Version: v.Name, Revision: t.base,
			Stage: record.StageTop, DecidedAt: record.At(t.from), EffectiveFrom: record.At(t.from), Rows: rows,
			Power: shownPower(c.Power), Slope: c.Slope, Intercept: c.Intercept, Apart: apart})
	if err != nil {
		return m, fmt.Errorf("correction between refits: %w", err)
	}
	return m, nil
}

// learnt is how many rows the correction has followed; 0 where there is none.
func (f *following) learnt() int64 {
	if f == nil {
		return 0
	}
	return f.speeds.rows()
}

// shownPower leaves out a power that changes nothing.
func shownPower(p float64) float64 {
	if p == 1 {
		return 0
	}
	return p
}

// split reports whether a class has a correction of its own.
func (t servedCorrections) split() bool {
	return slices.ContainsFunc(t, func(x servedCorrection) bool { return len(x.correction.Apart) > 0 })
}

// powered reports whether one has a power.
func (t servedCorrections) powered() bool {
	return slices.ContainsFunc(t, func(x servedCorrection) bool { return shownPower(x.correction.Power) != 0 })
}

// appendPowers appends the powers. States without any have no such part.
func (t servedCorrections) appendPowers(dst []byte) []byte {
	for _, x := range t {
		dst = binenc.AppendFloat64(dst, x.correction.Power)
	}
	return dst
}

func (t servedCorrections) restorePowers(r *binenc.Reader) error {
	for i := range t {
		if t[i].correction.Power = r.Float64(); r.Err() != nil {
			return r.Err()
		}
		if err := t[i].correction.Check(); err != nil {
			return err
		}
	}
	return nil
}

// appendApart appends the corrections of single classes. States without any have no such part.
func (t servedCorrections) appendApart(dst []byte) []byte {
	for _, x := range t {
		dst = appendApart(dst, x.correction.Apart)
	}
	return dst
}

func appendApart(dst []byte, apart []calibrator.ClassCorrection) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(apart)))
	for _, x := range apart {
		dst = binenc.AppendFloat64s(binenc.AppendUvarint(dst, uint64(x.Class)), x.Slope, x.Intercept)
	}
	return dst
}

func (t servedCorrections) restoreApart(r *binenc.Reader) (err error) {
	for i := range t {
		if t[i].correction.Apart, err = restoreApart(r); err != nil {
			return err
		}
	}
	return nil
}

func restoreApart(r *binenc.Reader) (out []calibrator.ClassCorrection, err error) {
	for range r.Count(17, mostApart) {
		x := calibrator.ClassCorrection{Class: int(r.Int("predicted class", 0, 1<<24))}
		readFloats(r, &x.Slope, &x.Intercept)
		out = append(out, x)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	return out, calibrator.CheckClasses(out)
}

func (t servedCorrections) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(t)))
	for _, x := range t {
		dst = binenc.AppendUvarint(binenc.AppendVarint(dst, x.from), uint64(x.base))
		dst = binenc.AppendFloat64s(dst, x.correction.Slope, x.correction.Intercept)
	}
	return dst
}

func (t *servedCorrections) restore(r *binenc.Reader) error {
	for range r.Count(18, 2*keptCorrections) {
		x := servedCorrection{from: r.Varint(), base: int(r.Int("revision", 0, 1<<40)), correction: uncorrected}
		readFloats(r, &x.correction.Slope, &x.correction.Intercept)
		if r.Err() != nil {
			return r.Err()
		}
		if err := x.correction.Check(); err != nil {
			return err
		}
		*t = append(*t, x)
	}
	return r.Err()
}

// append appends what was served, then what is learnt.
func (c *corrections) append(dst []byte) ([]byte, error) {
	if dst = c.served.append(dst); c.served.split() {
		dst = c.served.appendApart(dst)
	}
	if c.served.powered() {
		dst = c.served.appendPowers(dst)
	}
	dst, f := c.cost.append(dst), c.following
	there := f != nil
	powered := there && f.powers != nil
	dst = append(dst, binenc.Flags(there, there, powered))
	if !there {
		return dst, nil
	}
	dst, err := f.append(dst)
	if err == nil {
		dst, err = f.appendClasses(dst)
	}
	if err == nil && powered {
		dst, err = f.appendPower(dst)
	}
	return dst, err
}

// restore reads what append wrote, of corrections that were split or powered.
func (c *corrections) restore(in *binenc.Reader, split, powered bool) error {
	err := c.served.restore(in)
	if err == nil && split {
		err = c.served.restoreApart(in)
	}
	if err == nil && powered {
		err = c.served.restorePowers(in)
	}
	if err != nil {
		return err
	}
	c.cost.restore(in)
	c.following, err = restoreFollowing(in, c.version.K)
	return err
}

// restoreFollowing reads what is learnt; nil = nothing. States of before classes could go apart end without these, and
// those of before there were powers begin to follow them.
func restoreFollowing(in *binenc.Reader, k int) (*following, error) {
	flags := in.Byte()
	if flags&1 == 0 {
		return nil, nil
	}
	f := &following{}
	err := f.restore(in)
	if err == nil && flags&2 != 0 {
		err = f.restoreClasses(in, k)
	}
	if err == nil && flags&4 != 0 {
		return f, f.restorePower(in, k)
	}
	f.powers = newPowers(k)
	return f, err
}

func (f *following) append(dst []byte) ([]byte, error) {
	state, err := json.Marshal(f.speeds)
	if err != nil {
		return dst, err
	}
	dst = binenc.AppendBytes(binenc.AppendUvarint(dst, uint64(f.base)), state)
	dst = binenc.AppendFloat64s(dst, f.served.Slope, f.served.Intercept, f.moved)
	return binenc.AppendUvarint(dst, uint64(f.rows)), nil
}

// appendClasses appends what is known of single predicted classes.
func (f *following) appendClasses(dst []byte) ([]byte, error) {
	return f.apart.append(appendApart(dst, f.served.Apart))
}

func (f *following) restoreClasses(r *binenc.Reader, k int) (err error) {
	if f.served.Apart, err = restoreApart(r); err != nil {
		return err
	}
	return f.apart.restore(r, k)
}

// appendPower appends what is known of powers.
func (f *following) appendPower(dst []byte) ([]byte, error) {
	state, err := json.Marshal(f.powers)
	return binenc.AppendBytes(binenc.AppendFloat64(dst, f.served.Power), state), err
}

func (f *following) restorePower(r *binenc.Reader, k int) (err error) {
	f.served.Power = r.Float64()
	state := r.Bytes(binenc.MaxItems)
	if r.Err() != nil {
		return r.Err()
	}
	if f.powers, err = restorePowers(state, k); err != nil {
		return fmt.Errorf("following: %w", err)
	}
	return f.served.Check()
}

func (f *following) restore(r *binenc.Reader) error {
	f.served = uncorrected
	f.base = int(r.Int("revision", 0, 1<<40))
	state := r.Bytes(binenc.MaxItems)
	readFloats(r, &f.served.Slope, &f.served.Intercept, &f.moved)
	f.rows = int(r.Int("rows", 0, 1<<40))
	if r.Err() != nil {
		return r.Err()
	}
	var err error
	if f.speeds, err = restoreSpeeds(state); err != nil {
		return fmt.Errorf("following: %w", err)
	}
	return f.served.Check()
}
