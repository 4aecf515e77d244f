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
func (f *fleet) admits(m *model, name string, reached int64) (bool, error) {
	if f.cfg.MaxVersions == 0 || m.versions[name] != nil {
		return true, nil
	}
	if base, _, shadow := record.BaseVersion(name); shadow && m.versions[base] != nil {
		return true, nil
	}
	live, own := 0, 0
	var oldest, oldestOwn *version
	for _, x := range f.models {
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
	most := pipeline.VersionsFor(f.cfg.MaxVersions, own)
	if live < most {
		return true, nil
	}
	if most < f.cfg.MaxVersions { // it has its share, and gives no other model's place away
		oldest = oldestOwn
	}
	if oldest == nil || (reached-oldest.last)*f.cfg.Pane < max(silentFor, f.cfg.FinalAfter) ||
		oldest.refit.Fitting() {
		return false, nil
	}
	return true, f.makeRoom(oldest, m, reached)
}

// olderThan orders versions by their last rows, then by name.
func (v *version) olderThan(o *version) bool {
	return cmp.Or(cmp.Compare(v.last, o.last), cmp.Compare(v.Model, o.Model), cmp.Compare(v.Name, o.Name)) < 0
}

// makeRoom forgets a version for one of model to. If nothing was ever published about it, it leaves nothing behind.
func (f *fleet) makeRoom(v *version, to *model, reached int64) error {
	const why = "another model version has its place (versions.max)"
	if err := (&stepper{f, v}).forget(why, reached*f.cfg.Pane); err != nil {
		return err
	}
	m := f.models[v.Model]
	if !refit.Untouched(v.refit) || len(v.keys) > 0 || !m.heads.Remove(v.Name) {
		return nil
	}
	delete(m.versions, v.Name)
	if len(m.versions) == 0 && m != to && m.orders.Empty() {
		f.remove(m)
	}
	return nil
}

// refuse counts the predictions of cells that are dropped.
func refuse(counts *pipeline.Counts, c *pipeline.Cell) error {
	if c.Slice != "" {
		return nil
	}
	set := new(acc.Set)
	if err := set.UnmarshalBinary(c.Set); err != nil {
		return err
	}
	n, _ := set.SeenRows()
	counts.Add(CountRefusedVersions, n)
	return nil
}

// versionsStatus lists the versions by name.
func (f *fleet) versionsStatus() (out []record.VersionStatus) {
	for m, v := range f.versions() {
		if m.heads.Shadowing(v.Name) {
			continue
		}
		st := record.VersionStatus{Model: m.name, Version: v.Name, Classes: v.K, Settled: v.contest.settled}
		if len(v.contest.rivals)+len(v.contest.dropped) > 0 {
			st.Others = map[int]int64{}
			maps.Copy(st.Others, v.contest.dropped)
		}
		for k, r := range v.contest.rivals {
			st.Others[k] += r.rows
		}
		out = append(out, st)
	}
	return out
}
