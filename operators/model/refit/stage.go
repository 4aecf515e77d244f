package refit

import "github.com/plumbline/plumbline/operators/model/stage"

// Stage refits the calibrators of all versions of a model task.
type Stage struct {
	env  *stage.Env
	cfg  Config
	deps Deps
	jobs map[*State]*job // fits that have not been collected
	wake chan struct{}   // signals that a fit has ended
}

// Deps are set by the program, not by the configuration.
type Deps struct {
	Pool     Pool   // nil = a pool of its own
	MaxBytes int    // largest size of an encoded calibrator; 0 = no limit
	Build    string // the version of this build, for the records
}

// New returns the stage; a nil pool of deps is replaced by one of its own.
func New(env *stage.Env, cfg Config, deps Deps) *Stage {
	if deps.Pool == nil {
		deps.Pool = NewPool(cfg.Workers)
	}
	return &Stage{env: env, cfg: cfg, deps: deps, jobs: map[*State]*job{}, wake: make(chan struct{}, 1)}
}

// Wake receives a value when a fit has ended since the last read.
func (g *Stage) Wake() <-chan struct{} { return g.wake }

// Computing reports whether a fit runs or waits for a place.
func (g *Stage) Computing() bool {
	for _, j := range g.jobs {
		if !j.finished() {
			return true
		}
	}
	return false
}

// Close cancels the fits that have not begun.
func (g *Stage) Close() {
	for _, j := range g.jobs {
		j.cancelled.Store(true)
	}
}

// jobOf returns the fits of a version's run. It starts them if they do not run: at the start of the run, or after a
// restore.
func (g *Stage) jobOf(s *State) *job {
	j := g.jobs[s]
	if j == nil {
		j = newJob(s.run.methods, s.run.fit, s.bounded(), s.run.seed, g.deps.MaxBytes)
		g.jobs[s] = j
		g.deps.Pool.start(j, g.wake)
	}
	return j
}

// cancel drops a version's fits.
func (g *Stage) cancel(s *State) {
	if j := g.jobs[s]; j != nil {
		j.cancelled.Store(true)
		delete(g.jobs, s)
	}
}

// Fitting reports whether a run waits for its fits.
func (s *State) Fitting() bool { return s.run.fitting() }

// Due returns the label pane at which the fits of a run that waits for them are collected.
func Due(s *State) int64 { return s.run.due }

// Awaits reports whether a label pane must wait: a fit is due at it and has not ended.
func (s *State) Awaits(pane int64) bool {
	return s.run.fitting() && pane >= s.run.due && !s.stage.jobOf(s).finished()
}

// Idle reports whether a label pane without rows would change nothing.
func (s *State) Idle(pane int64) bool { return !s.run.fitting() || pane >= s.run.due }

// Continue starts the fits that were under way when the state was saved.
func (s *State) Continue() {
	if s.run.fitting() {
		s.stage.jobOf(s)
	}
}
