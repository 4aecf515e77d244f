package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/web/calibrate"
)

// LatestCalibrators is what model servers can ask this process for: every process follows the calibrators topic, so
// all give the same answer.
type LatestCalibrators struct{ *Engine }

// Latest implements calibrate.Source. A model version without a calibrator is known once a decision about it, even one
// to change nothing, was published, for every process reads those; before that, only the process whose model task has
// it in its state knows it.
func (c LatestCalibrators) Latest(model, version string) (calibrate.InForce, <-chan struct{}, bool) {
	l, changed, ok := c.published.Newest(arrowio.ModelKey{Model: model, Version: version})
	if ok {
		return inForce(model, l), changed, true
	}
	known := c.knownVersions(model)
	for _, v := range slices.Backward(known) { // sorted: the last version by name
		if version == "" || v == version {
			if l, changed, ok = c.published.Newest(arrowio.ModelKey{Model: model, Version: v}); !ok {
				l.Calibrator = calibrator.Identity{}
			}
			return inForce(model, l), changed, true
		}
	}
	return calibrate.InForce{Model: model, Version: l.Version, Calibrator: calibrator.Identity{}}, changed, false
}

// Classes implements calibrate.Source. It returns the configured number or, failing that, the one settled for all
// shards or the one in the state of a model task of this process. A number that is not settled yet may be wrong.
func (c LatestCalibrators) Classes(model, version string) int {
	for i := range c.Config.Models {
		if m := &c.Config.Models[i]; m.Name == model && m.Classes > 0 {
			return m.Classes
		}
	}
	if k := c.classes.Of(arrowio.ModelKey{Model: model, Version: version}); k > 0 {
		return k
	}
	for _, t := range c.taskStatuses() { // without a copy: each request asks
		for i := range t.Versions {
			if v := &t.Versions[i]; v.Settled && v.Model == model && v.Version == version {
				return v.Classes
			}
		}
	}
	return 0
}

func inForce(model string, l apply.Latest) calibrate.InForce {
	f := calibrate.InForce{Model: model, Version: l.Version, Revision: l.Revision, From: time.Unix(0, l.From),
		Calibrator: l.Calibrator, Canary: l.Canary, Share: l.Share}
	if l.Top != nil {
		f.Top, f.TopFrom = &l.Top.Correction, time.Unix(0, l.Top.From)
	}
	return f
}

// versionsInState returns all versions in the state of this process's model tasks, whether or not they are shown.
func (rt *running) versionsInState() (out []record.VersionStatus) {
	for _, t := range rt.taskStatuses() {
		out = append(out, t.Versions...)
	}
	return out
}

// knownVersions returns, sorted, the versions of a model with state, snapshots or decisions in this process. An order
// alone does not make a version known.
func (rt *Engine) knownVersions(model string) (out []string) {
	for _, v := range rt.versionsInState() {
		if v.Model == model {
			out = append(out, v.Version)
		}
	}
	for _, s := range rt.History.SeriesOf(model) {
		out = append(out, s.Version)
	}
	for _, c := range rt.History.Calibrators(model, "", 0) {
		if !c.Refused() {
			out = append(out, c.Version)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var errFollowing = errors.New("the calibrators topic has not been read to its end yet")

// Ready implements calibrate.Source.
func (c LatestCalibrators) Ready() error {
	if c.following.Load() {
		return errFollowing
	}
	return nil
}
