package refit

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// State is what is known of the refits of one model version.
type State struct {
	publisher
	period  int64 // index of the period of the last refit by period
	started bool
	alarmAt int64      // end of the pane of the last refit on alarm; 0 = none
	run     *run       // under way
	orders  [][16]byte // the latest orders that were obeyed
	online  *online
}

// publisher puts the calibrators of a version in force, and keeps watch over them.
type publisher struct {
	stage    *Stage
	version  *stage.Version
	revision int                              // the latest that was published
	unit     float64                          // largest row weight at the latest publication by a refit
	pin      *pin                             // only a person changes what is in force
	monitor  *monitor                         // of the calibrator in force
	losses   map[*stage.InForce]*sampleLosses // of the sample, by calibrator; nil is the identity. Not in the state
}

// NewState returns the state of a version that was never refitted.
func (g *Stage) NewState(v *stage.Version) *State {
	return &State{publisher: publisher{stage: g, version: v}}
}

// whole is the key of all rows of the version.
func (p *publisher) whole() *stage.Key { return p.stage.env.Whole(p.version) }

// Revision is the latest revision that was published; 0 = none.
func (p *publisher) Revision() int { return p.revision }

// Running reports whether a run is under way.
func (s *State) Running() bool { return s.run != nil }

// Online is what snapshots say of online Platt scaling; nil before its first row.
func (s *State) Online() *record.Online { return s.online.shown() }

// Step does what is due for a version's calibrators at the end of a label pane of all its rows: it tests the one in
// force, goes on with the run under way, and decides whether to begin one.
func (s *State) Step(in *stage.Pane) error {
	if err := s.stepOnline(in); err != nil {
		return err
	}
	if rolled, err := s.stepMonitor(in); err != nil || rolled {
		return err
	}
	if s.run != nil {
		if err := s.stepRun(in); err != nil {
			return err
		}
	}
	cfg := &s.stage.cfg
	if cfg.Method == MethodNone || cfg.Method == "" || s.pin != nil {
		return nil
	}
	if since, firing := s.whole().FiringSince(); firing && cfg.OnAlarm {
		return s.onAlarm(in, since)
	}
	return s.byPeriod(in)
}

// byPeriod begins a run in a new period. One that is about to be published goes on instead.
func (s *State) byPeriod(in *stage.Pane) error {
	cfg, k := &s.stage.cfg, s.whole()
	if cfg.Period <= 0 {
		return nil
	}
	period := pipeline.PaneIndex(in.End, int64(cfg.Period))
	if !s.started {
		s.started, s.period = true, period
	}
	if period == s.period || s.run.busy() || s.run.promises() {
		return nil
	}
	rows := k.Sample
	if f := s.version.Newest(); f != nil && f.Reason == reasonRollback {
		// Something changed: on rows from before, what was taken back would win again.
		rows = rowsSince(rows, f.From)
	}
	if len(rows) < cfg.MinRows {
		return nil
	}
	s.period = period
	return s.begin(rows, reasonPeriod, in)
}

// onAlarm waits until FreshRows sampled rows have come since the alarm's start, and uses those only: rows from
// before the change would pull the fit back. While an alarm fires there is no refit by period, and one that is
// under way gives way: its rows are from before.
func (s *State) onAlarm(in *stage.Pane, since int64) error {
	cfg := &s.stage.cfg
	if s.run.busy() || s.alarmAt != 0 && in.End-s.alarmAt < int64(cfg.Cooldown) {
		return nil
	}
	if f := s.version.Newest(); f != nil && f.Reason == reasonAlarm {
		since = max(since, f.From)
	}
	rows := rowsSince(s.whole().Sample, since)
	if len(rows) < cfg.FreshRows {
		return nil
	}
	s.alarmAt = in.End
	// It is the refit of its period too: the next by period does not follow on its heels.
	s.started, s.period = true, pipeline.PaneIndex(in.End, max(int64(cfg.Period), 1))
	return s.begin(rows, reasonAlarm, in)
}

// rowsSince returns the sampled rows predicted at or after an event time.
func rowsSince(rows []acc.SampleRow, since int64) []acc.SampleRow {
	var out []acc.SampleRow
	for i := range rows {
		if rows[i].TS >= since {
			out = append(out, rows[i])
		}
	}
	return out
}

// begin starts a run on the older part of the rows; the newer part is the first that its candidates are scored on.
// The fits run beside the task and are due Delay panes later: what is decided does not depend on how long they take.
func (s *State) begin(rows []acc.SampleRow, reason string, in *stage.Pane) error {
	cfg, v := &s.stage.cfg, s.version
	if len(rows) > cfg.MaxRows {
		rows = rows[len(rows)-cfg.MaxRows:]
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, stage.CompareRows)
	nTest := int(math.Ceil(float64(len(rows)) * cfg.TestShare))
	fit, held := rows[:len(rows)-nTest], rows[len(rows)-nTest:]
	if len(fit) == 0 {
		return nil
	}
	if s.run != nil {
		if err := s.end("the next refit began, by "+reason, in.End); err != nil {
			return err
		}
	}
	f := v.Newest()
	s.run = &run{reason: reason, base: v.InForceRevision(), started: in.End, due: in.Index + max(cfg.Delay, 1),
		seed:    s.whole().Seed("refit", in.Index),
		methods: candidateMethods(cfg.Method, v.K, len(fit), f != nil && !isIdentity(f.Cal)),
		fit:     fit, held: held, fitRows: int64(len(fit)), fitFrom: fit[0].TS, fitTo: fit[len(fit)-1].TS,
		weight: maxWeight(rows)}
	s.stage.job(s)
	return nil
}

func maxWeight(rows []acc.SampleRow) (w float64) {
	for i := range rows {
		w = max(w, float64(rows[i].W))
	}
	return w
}

func isIdentity(c calibrator.Calibrator) bool {
	_, ok := c.(calibrator.Identity)
	return ok
}

// Forget ends what is under way, and forgets what was learnt of a version that is out of service. The revision,
// what is in force, pins and orders stay.
func (s *State) Forget(why string, now int64) error {
	if s.run != nil {
		if err := s.end(why, now); err != nil {
			return err
		}
	}
	s.monitor, s.online, s.losses = nil, nil, nil
	return nil
}
