package refit

import "github.com/plumbline/plumbline/operators/model/stage"

// Stage refits the calibrators of one model task's versions.
type Stage struct {
	env  *stage.Env
	cfg  Config
	deps Deps
	jobs map[*State]*job // fits under way
	wake chan struct{}   // a fit has ended
}

// Deps is what the program sets.
type Deps struct {
	Pool     Pool   // nil = one of the stage's own
	MaxBytes int    // of an encoded calibrator; 0 = no bound
	Build    string // the version of this build, for the records
}

// New returns the stage.
func New(env *stage.Env, cfg Config, deps Deps) *Stage {
	if deps.Pool == nil {
		deps.Pool = NewPool(cfg.Workers)
	}
	return &Stage{env: env, cfg: cfg, deps: deps, jobs: map[*State]*job{}, wake: make(chan struct{}, 1)}
}

// Wake has a value when a fit has ended since it was last read.
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

// job returns the fits of a version's run, and starts them where they do not run: at the run's start, or after the
// state was restored.
func (g *Stage) job(s *State) *job {
	j := g.jobs[s]
	if j == nil {
		j = newJob(s.run.methods, s.run.fit, s.version.K, s.run.seed, g.deps.MaxBytes)
		g.jobs[s] = j
		g.deps.Pool.start(j, g.wake)
	}
	return j
}

// cancel forgets a version's fits: nobody wants them any more.
func (g *Stage) cancel(s *State) {
	if j := g.jobs[s]; j != nil {
		j.cancelled.Store(true)
		delete(g.jobs, s)
	}
}

// Fitting reports whether a run waits for its fits.
func (s *State) Fitting() bool { return s.run.fitting() }

// Awaits reports whether a label pane must not be processed yet: a fit is due at it that is not there.
func (s *State) Awaits(pane int64) bool {
	return s.run.fitting() && pane >= s.run.due && !s.stage.job(s).finished()
}

// Idle reports whether a label pane without rows would bring about nothing more.
func (s *State) Idle(pane int64) bool { return !s.run.fitting() || pane >= s.run.due }

// Continue starts the fits that were under way when the state was saved.
func (s *State) Continue() {
	if s.run.fitting() {
		s.stage.job(s)
	}
}
