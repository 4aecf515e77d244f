package model

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
)

// Methods of RefitSpec that are no calibrator's name.
const (
	methodNone = "none"
	methodAuto = "auto"
)

// rowsPerParameter is how many rows auto wants for each number that a method fits: with fewer, the fit follows the
// noise of the rows, and the level that its test is given is lost to the others.
const rowsPerParameter = 20

// Least rows of the methods of auto whose number of parameters says little: isotonic regression has as many steps as
// the rows let it, and the mixture of ETS is nearly void on a few hundred rows.
const (
	mixtureRows  = 500
	isotonicRows = 2000
	// maxMatrix bounds K of auto's K×K map: its fit takes K³.
	maxMatrix = 32
)

// candidateMethods is what one refit fits, in a fixed order. auto is one method of each kind that n rows of k classes
// carry: the family costs level (each is tested at α/m), so it has no two of a kind.
func candidateMethods(method string, k, n int, identity bool) []string {
	if method != methodAuto {
		return []string{method}
	}
	var out []string
	if identity { // to take back what is in force
		out = append(out, "identity")
	}
	out = append(out, "temperature")
	if n >= mixtureRows {
		out = append(out, "ensemble_temperature", "beta")
	}
	switch {
	case k > 2 && k <= maxMatrix && n >= rowsPerParameter*(k*k+k):
		out = append(out, "dirichlet")
	case n >= rowsPerParameter*(2*k-1):
		out = append(out, "vector")
	}
	if n >= isotonicRows {
		out = append(out, "isotonic")
	}
	return out
}

// FitPool runs the fits of all model tasks of a process, so many at a time. The zero value is not one.
type FitPool struct{ slots chan struct{} }

// NewFitPool returns a pool of n fits at a time; 0 is half of the processors, at least one.
func NewFitPool(n int) *FitPool {
	if n <= 0 {
		n = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return &FitPool{slots: make(chan struct{}, n)}
}

// fitJob is the fits of one refit. Its results are a function of its input alone, whenever and wherever it runs.
type fitJob struct {
	methods []string
	z       []float32
	k       int
	y       []int32
	w       []float64
	options calibrator.Options
	most    int             // ModelConfig.MaxBytes
	rows    []acc.SampleRow // until their digest is known

	digest    string
	results   []fitResult // valid after done
	done      chan struct{}
	cancelled atomic.Bool
}

// fitResult is one method's fit: a calibrator as it reads back from its encoding, or why there is none.
type fitResult struct {
	method   string
	encoded  []byte
	cal      calibrator.Calibrator
	onBound  bool
	warnings []string
	err      error
}

func newFitJob(methods []string, rows []acc.SampleRow, k int, seed uint64, most int) *fitJob {
	j := &fitJob{methods: methods, k: k, most: most, options: calibrator.Options{Seed: seed}, rows: rows, done: make(chan struct{})}
	j.z, j.y, j.w = columns(rows)
	return j
}

// start runs the job when the pool has a place, and then tells wake, which holds one piece of news at most.
func (p *FitPool) start(j *fitJob, wake chan<- struct{}) {
	go func() {
		p.slots <- struct{}{}
		j.run()
		<-p.slots
		select {
		case wake <- struct{}{}:
		default:
		}
	}()
}

// run fits every method; one that was cancelled has no results, and nobody waits for them.
func (j *fitJob) run() {
	defer close(j.done)
	j.digest, j.rows = digestRows(j.rows), nil
	for _, m := range j.methods {
		if j.cancelled.Load() {
			return
		}
		j.results = append(j.results, j.fit(m))
	}
}

// fit is one fit; what panics in it is an error of this fit and of nothing else.
func (j *fitJob) fit(method string) fitResult {
	return guarded(method, func() (fitResult, error) {
		cal, report, err := calibrator.Fit(method, j.z, j.k, j.y, j.w, j.options)
		if err != nil {
			return fitResult{}, err
		}
		// What goes on is what a restarted process reads back.
		encoded, err := calibrator.Encode(cal)
		if err == nil {
			err = CheckSize(encoded, j.most)
		}
		if err == nil {
			cal, err = calibrator.Decode(encoded)
		}
		return fitResult{encoded: encoded, cal: cal, onBound: report.OnBound, warnings: report.Warnings}, err
	})
}

// MaxCalibratorBytes is what a calibrator may have in records of so many bytes: a sixteenth is for what stands beside it.
func MaxCalibratorBytes(messageMax int) int { return messageMax - messageMax/16 }

// CheckSize refuses an encoded calibrator of more than most bytes (MaxCalibratorBytes; 0: any), which no topic takes: a task that decided to publish it
// would end by the same error after every restart.
func CheckSize(encoded []byte, most int) error {
	if most > 0 && len(encoded) > most {
		return fmt.Errorf("calibrator of %d bytes: must be at most %d, 15/16 of kafka.message_max_bytes", len(encoded), most)
	}
	return nil
}

// guarded names a method's result, and makes an error of a panic.
func guarded(method string, fit func() (fitResult, error)) (r fitResult) {
	defer func() {
		if p := recover(); p != nil {
			r = fitResult{method: method, err: fmt.Errorf("fit %s: panic: %v", method, p)}
		}
	}()
	r, err := fit()
	if err != nil {
		return fitResult{method: method, err: fmt.Errorf("fit %s: %w", method, err)}
	}
	r.method = method
	return r
}

func (j *fitJob) finished() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// columns are the rows as fits take them.
func columns(rows []acc.SampleRow) (z []float32, y []int32, w []float64) {
	for i := range rows {
		z = append(z, rows[i].Z...)
		y = append(y, rows[i].Y)
		w = append(w, float64(rows[i].W))
	}
	return z, y, w
}
