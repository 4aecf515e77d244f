//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The same sources, but for a process that stops itself, where a file asks for it, between its look at who holds a
// model task and what it writes then.
const (
	lookBefore = "\tif err := l.write(s, s.before, "
	haltCall   = "\thaltBehind(name, len(s.before))\n"
	haltSource = `package pipeline

import (
	"os"
	"strings"
	"syscall"
)

func haltBehind(task string, outputs int) {
	if outputs > 0 && strings.HasPrefix(task, "model-") && os.Remove(os.Getenv("PLUMBLINE_STOP")) == nil {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}
`
)

// zombieBehind stops processes at the one point where no look can help: who holds the task has been asked, and what is
// written then comes when another has long gone on. The last one wakes when all is done.
func (s *suite) zombieBehind(t *testing.T, o deployOptions) {
	o.binary = buildHooked(t, filepath.Join(root, "pipeline", "loop.go"), lookBefore, haltCall, haltSource)
	d := s.deploy(t, o)
	s.disturbed(t, d, func(p *producer) {
		for i, share := range []float64{0.1, 0.3, 0.6} {
			s.progress(t, d, share)
			w := d.workers[i%len(d.workers)]
			if !w.haltItself(30 * time.Second) {
				t.Logf("worker %d had no output of a model task to write", w.number)
				continue
			}
			d.did("SIGSTOP of a worker between look and write")
			others := d.without(w)
			others.ready(2 * time.Minute) // they have its tasks
			if i < 2 {
				time.Sleep(away / 2)
			} else {
				p.wait(t, s.over+drainLimit)
				others.drain(s.input.total(), s.input.total(), drainLimit)
			}
			w.resume()
			time.Sleep(2 * time.Second) // time to write what it had in hand
			d.ready(2 * time.Minute)
		}
	})
	if len(d.events) == 0 {
		t.Error("no process was stopped: the test did not test it")
	}
}

// haltItself asks a process to stop itself and waits until it has; false where it did not, and is not asked any more.
func (w *worker) haltItself(limit time.Duration) bool {
	w.d.t.Helper()
	if err := os.WriteFile(w.halt, nil, 0o600); err != nil {
		w.d.t.Fatal(err)
	}
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if w.stopped() {
			return true
		}
	}
	if os.Remove(w.halt) == nil {
		return false
	}
	time.Sleep(time.Second) // it was about to
	return w.stopped()
}

// stopped reads the state of the process.
func (w *worker) stopped() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(b, ')')
	return i >= 0 && len(b) > i+2 && b[i+2] == 'T'
}
