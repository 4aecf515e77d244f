package refit

import "github.com/plumbline/plumbline/operators/model/stage"

// Stage refits the calibrators of all versions of a model task.
type Stage struct {
	env  *stage.Env
	cfg  Config
	deps Deps
	jobs map[*run]*job // fits that have not been collected
	wake chan struct{} // signals that a fit has ended
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
	return &Stage{env: env, cfg: cfg, deps: deps, jobs: map[*run]*job{}, wake: make(chan struct{}, 1)}
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

// cancel drops the fits of a run.
func (g *Stage) cancel(r *run) {
	if j := g.jobs[r]; j != nil {
		j.cancelled.Store(true)
		delete(g.jobs, r)
	}
}
