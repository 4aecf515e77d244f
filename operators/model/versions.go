package model

import (
	"cmp"
	"maps"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Shards bound the model versions that they know, each by its own records. The task bounds those of all shards: a new
// version beyond the bound takes the place of one that is silent, or its cells are dropped.

// CountRefusedVersions counts predictions of model versions beyond the bound.
const CountRefusedVersions = "versions_refused"

// silentFor is the least time, in ns, that a version has had no rows when another takes its place.
const silentFor = int64(time.Hour)

// admits reports whether a version is known or may become so.
func admits(t *Task, m *model, name string) (bool, error) {
	if t.cfg.MaxVersions == 0 || m.versions[name] != nil {
		return true, nil
	}
	if base, _, shadow := record.BaseVersion(name); shadow && m.versions[base] != nil {
		return true, nil
	}
	live, own := 0, 0
	var oldest, oldestOwn *version
	for _, x := range t.models {
		for _, v := range x.versions {
			if len(v.keys) == 0 {
				continue
			}
			if live++; x == m {
				own++
			}
			if v.last == minPane {
				continue
			}
			if oldest == nil || v.olderThan(oldest) {
				oldest = v
			}
			if x == m && (oldestOwn == nil || v.olderThan(oldestOwn)) {
				oldestOwn = v
			}
		}
	}
	most := pipeline.VersionsFor(t.cfg.MaxVersions, own)
	if live < most {
		return true, nil
	}
	if most < t.cfg.MaxVersions { // it has its share, and gives no other model's place away
		oldest = oldestOwn
	}
	if oldest == nil || (t.shards.reached-oldest.last)*t.cfg.Pane < max(silentFor, t.cfg.FinalAfter) ||
		oldest.refit.Fitting() {
		return false, nil
	}
	return true, makeRoom(t, oldest, m)
}

// olderThan orders versions by their last rows, then by name.
func (v *version) olderThan(o *version) bool {
	return cmp.Or(cmp.Compare(v.last, o.last), cmp.Compare(v.Model, o.Model), cmp.Compare(v.Name, o.Name)) < 0
}

// makeRoom forgets a version for one of model to. If nothing was ever published about it, it leaves nothing behind.
func makeRoom(t *Task, v *version, to *model) error {
	const why = "another model version has its place (versions.max)"
	if err := (&stepper{t, v}).forget(why, t.shards.reached*t.cfg.Pane); err != nil {
		return err
	}
	m := t.models[v.Model]
	if !refit.Untouched(v.refit) || len(v.keys) > 0 || !m.heads.Remove(v.Name) {
		return nil
	}
	delete(m.versions, v.Name)
	if len(m.versions) == 0 && m != to && m.orders.Empty() {
		remove(t, m)
	}
	return nil
}

// refuse counts the predictions of cells that are dropped.
func refuse(t *Task, c *pipeline.Cell) error {
	if c.Slice != "" {
		return nil
	}
	set := new(acc.Set)
	if err := set.UnmarshalBinary(c.Set); err != nil {
		return err
	}
	n, _ := set.SeenRows()
	t.counts.Add(CountRefusedVersions, n)
	return nil
}

// versionsStatus lists the versions by name.
func versionsStatus(t *Task) (out []record.VersionStatus) {
	for m, v := range versionsOf(t) {
		if m.heads.Shadowing(v.Name) {
			continue
		}
		st := record.VersionStatus{Model: m.name, Version: v.Name, Classes: v.K, Settled: v.contest.settled}
		if len(v.contest.rivals)+len(v.contest.dropped) > 0 {
			st.Others = maps.Clone(v.contest.dropped)
			if st.Others == nil {
				st.Others = map[int]int64{}
			}
		}
		for k, r := range v.contest.rivals {
			st.Others[k] += r.rows
		}
		out = append(out, st)
	}
	return out
}
