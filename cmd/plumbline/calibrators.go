package main

import (
	"errors"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/web/calibrate"
)

// latestCalibrators is what model servers can ask this process for: every process follows the calibrators topic, so
// all give the same answer.
type latestCalibrators struct{ *engine }

// Latest implements calibrate.Source. A model version without a calibrator is known once it has a snapshot here.
func (c latestCalibrators) Latest(model, version string) (calibrate.InForce, <-chan struct{}, bool) {
	l, changed, ok := c.published.Latest(arrowio.ModelKey{Model: model, Version: version})
	f := calibrate.InForce{Model: model, Version: l.Version, Revision: l.Revision, From: time.Unix(0, l.From), Calibrator: l.Calibrator, Canary: l.Canary, Share: l.Share}
	if ok {
		return f, changed, true
	}
	f.Calibrator = calibrator.Identity{}
	for _, s := range c.history.Series() {
		if s.Model == model && (version == "" || s.Version == version) {
			f.Version, ok = s.Version, true // sorted: the last version by name
		}
	}
	return f, changed, ok
}

var errFollowing = errors.New("the calibrators topic has not been read to its end yet")

// Ready implements calibrate.Source.
func (c latestCalibrators) Ready() error {
	if c.following.Load() > 0 {
		return errFollowing
	}
	return nil
}
