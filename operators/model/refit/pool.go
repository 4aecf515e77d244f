package refit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Pool runs the fits of all model tasks of a process. Its capacity limits how many run at a time.
type Pool chan struct{}

// NewPool returns a pool for n fits at a time. If n is 0, it takes half of the processors, at least one.
func NewPool(n int) Pool {
	if n <= 0 {
		n = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return make(Pool, n)
}

// start runs the job when the pool has a place, and then signals wake. wake holds at most one signal.
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

// job holds the fits of one run. Its results depend only on its input.
type job struct {
	methods []string
	capped
	z       []float32
	y       []int32
	w       []float64
	options calibrator.Options
	most    int             // Deps.MaxBytes
	rows    []acc.SampleRow // nil once their digest is known

	digest    string
	results   []fitResult // valid after done
	done      chan struct{}
	cancelled atomic.Bool
}

// fitResult is the fit of one method: a calibrator, decoded from its encoding, or the error.
type fitResult struct {
	method   string
	encoded  []byte
	cal      calibrator.Calibrator
	onBound  bool
	warnings []string
	err      error
}

func newJob(methods []string, rows []acc.SampleRow, of capped, seed uint64, most int) *job {
	j := &job{methods: methods, capped: of, most: most, options: calibrator.Options{Seed: seed}, rows: rows,
		done: make(chan struct{})}
	j.z, j.y, j.w = fitOn(rows, of.k)
	return j
}

// fitAll fits every method. A cancelled job has no results.
func (j *job) fitAll() {
	defer close(j.done)
	defer func() {
		if p := recover(); p != nil { // of no fit: each has a recover of its own
			j.results = []fitResult{{method: j.methods[0], err: fmt.Errorf("fit: panic: %v", p)}}
		}
	}()
	j.digest, j.rows = digestRows(j.rows), nil
	for _, m := range j.methods {
		if j.cancelled.Load() {
			return
		}
		j.results = append(j.results, j.fit(m))
	}
}

// fit fits one method. A panic becomes an error of this fit only.
func (j *job) fit(method string) fitResult {
	return recovered(method, func() (fitResult, error) {
		cal, report, err := calibrator.Fit(method, calibrator.NewData(j.z, j.k, j.y, j.w), j.options)
		if err != nil {
			return fitResult{}, err
		}
		// Tests floor probabilities at e^-B. What is served must not fall below: a zero costs more than they see.
		cal = calibrator.Bounded(cal, math.Exp(-j.bound))
		// Continue with the decoded calibrator, as a restarted process would.
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

// recovered sets the method of a result, and turns a panic into an error.
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

// MaxCalibratorBytes returns the largest size of an encoded calibrator in records of at most messageMax bytes. A
// sixteenth is kept for the rest of the record.
func MaxCalibratorBytes(messageMax int) int { return messageMax - messageMax/16 }

// CheckSize refuses an encoded calibrator of more than most bytes (MaxCalibratorBytes; 0 = no limit). No topic would
// take it, and a task that decided to publish it would fail again after every restart.
func CheckSize(encoded []byte, most int) error {
	if most > 0 && len(encoded) > most {
		return fmt.Errorf("calibrator of %d bytes: must be at most %d, 15/16 of kafka.message_max_bytes",
			len(encoded), most)
	}
	return nil
}

// digestRows returns the SHA-256 of the rows that a run is fitted on: `uvarint` n, then each row as sampled rows are
// encoded in a checkpoint (docs/format.md, Sections), by prediction time, then id. Two fits with equal
// digests had the same ids, times, weights, labels and scores, bit for bit.
func digestRows(rows []acc.SampleRow) string {
	h := sha256.New()
	buf := binenc.AppendUvarint(nil, uint64(len(rows)))
	for i := range rows {
		h.Write(buf)
		buf = stage.AppendRows(buf[:0], rows[i:i+1])[1:] // without the count, which is one byte
	}
	h.Write(buf)
	return stage.DigestPrefix + hex.EncodeToString(h.Sum(nil))
}
