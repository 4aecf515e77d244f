package refit

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
)

// Pool runs the fits of all model tasks of a process, so many at a time: each has a place in the channel while it runs.
type Pool chan struct{}

// NewPool returns a pool of n fits at a time; 0 is half of the processors, at least one.
func NewPool(n int) Pool {
	if n <= 0 {
		n = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return make(Pool, n)
}

// start runs the job when the pool has a place, and then signals wake, which holds one signal at most.
func (p Pool) start(j *job, wake chan<- struct{}) {
	go func() {
		p <- struct{}{}
		j.fitAll()
		<-p
		select {
		case wake <- struct{}{}:
		default:
		}
	}()
}

// job is the fits of one run. Its results are a function of its input alone, whenever and wherever it runs.
type job struct {
	methods []string
	z       []float32
	k       int
	y       []int32
	w       []float64
	options calibrator.Options
	most    int             // Deps.MaxBytes
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

func newJob(methods []string, rows []acc.SampleRow, k int, seed uint64, most int) *job {
	j := &job{methods: methods, k: k, most: most, options: calibrator.Options{Seed: seed}, rows: rows,
		done: make(chan struct{})}
	for i := range rows {
		j.z = append(j.z, rows[i].Z...)
		j.y = append(j.y, rows[i].Y)
		j.w = append(j.w, float64(rows[i].W))
	}
	return j
}

// fitAll fits every method. A job that was cancelled has no results, and nobody waits for them.
func (j *job) fitAll() {
	defer close(j.done)
	j.digest, j.rows = digestRows(j.rows), nil
	for _, m := range j.methods {
		if j.cancelled.Load() {
			return
		}
		j.results = append(j.results, j.fit(m))
	}
}

// fit is one fit; a panic in it is an error of this fit and of nothing else.
func (j *job) fit(method string) fitResult {
	return recovered(method, func() (fitResult, error) {
		cal, report, err := calibrator.Fit(method, calibrator.NewData(j.z, j.k, j.y, j.w), j.options)
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

// recovered names a method's result, and makes an error of a panic.
func recovered(method string, fit func() (fitResult, error)) (r fitResult) {
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

func (j *job) finished() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// MaxCalibratorBytes is what a calibrator may have in records of so many bytes: a sixteenth is for what stands
// beside it.
func MaxCalibratorBytes(messageMax int) int { return messageMax - messageMax/16 }

// CheckSize refuses an encoded calibrator of more than most bytes (MaxCalibratorBytes; 0: any), which no topic
// takes: a task that decided to publish it would end by the same error after every restart.
func CheckSize(encoded []byte, most int) error {
	if most > 0 && len(encoded) > most {
		return fmt.Errorf("calibrator of %d bytes: must be at most %d, 15/16 of kafka.message_max_bytes",
			len(encoded), most)
	}
	return nil
}
