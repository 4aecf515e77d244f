//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// killAtRandom is kill -9 of processes at random moments; each comes back soon, often before the group has missed it.
func (s *suite) killAtRandom(t *testing.T, o deployOptions) {
	d := s.deploy(t, o)
	s.disturbedOver(t, d, s.killing, func(p *producer) {
		for i := range s.kills {
			// Kills come in all states of the group: while it works, while it still waits for the last one killed, and
			// while it assigns.
			time.Sleep(s.during(2 * s.killing / time.Duration(s.kills+1)))
			w := d.workers[s.random.IntN(len(d.workers))]
			w.kill()
			d.did("kill -9 of a worker")
			t.Logf("kill %d: worker %d, %d rows sent", i+1, w.number, p.rows.Load())
			time.Sleep(s.during(time.Second))
			w.start()
		}
	})
}

// away is longer than the session timeout of the group, 10 s, by enough for the others to be at work.
const away = 18 * time.Second

// What a process says that wakes when others have its tasks: a checkpoint of it was refused, or the group told it
// first.
const (
	saysFenced = "another process has taken over"
	saysLeft   = "the group has gone on without this process"
)

// A process whose heartbeats are held back while there is a file: it wakes and does not hear that it has left the
// group.
const (
	beatCall  = "\t\terr := p.beat(idle)\n"
	holdCall  = "\t\tif holdsHeartbeats() {\n\t\t\tcontinue\n\t\t}\n"
	holdHooks = `package kafkaio

import "os"

func holdsHeartbeats() bool {
	_, err := os.Stat(os.Getenv("PLUMBLINE_STOP"))
	return err == nil
}
`
)

// zombie stops a process for longer than the session timeout; the others take its tasks. What it hears of first when it
// wakes is chance: the answer to its heartbeat, or that the number of its next checkpoint is taken. The first and the
// last are made to try the checkpoint: their heartbeats are held back until a log line tells that it was refused. The
// second, as it comes, may hear of either. The last one wakes when everything is done: nothing that it still writes may
// change what is there. What is refused at the later moments of a checkpoint, after the look at who holds the task,
// zombieBehind and kafkaio's TestStoreRefusesAZombie have.
func (s *suite) zombie(t *testing.T, o deployOptions) {
	o.binary = buildHooked(t, filepath.Join(root, "pipeline", "kafkaio", "heartbeat.go"), beatCall, holdCall, holdHooks)
	d := s.deploy(t, o)
	s.disturbed(t, d, func(p *producer) {
		for i, share := range []float64{0.1, 0.5} {
			s.progress(t, d, share)
			w := d.workers[i%len(d.workers)]
			w.pause()
			d.did("SIGSTOP of a worker for %v", away)
			time.Sleep(away)
			d.without(w).ready(2 * time.Minute) // they have its tasks
			if i == 0 {
				w.resumeToFence()
			} else {
				w.resumeTo(saysFenced, saysLeft)
			}
			d.ready(2 * time.Minute)
		}
		s.progress(t, d, 0.85)
		w := d.workers[2%len(d.workers)]
		w.pause()
		d.did("SIGSTOP of a worker until all is done")
		p.wait(t, s.over+drainLimit)
		d.without(w).drain(s.input.total(), s.input.total(), drainLimit)
		w.resumeToFence()
		time.Sleep(2 * time.Second) // time to write what it had in hand
	})
	t.Logf("%d fenced checkpoints, %d times the group had gone on", d.logged(saysFenced), d.logged(saysLeft))
}

// resumeToFence wakes a process without heartbeats until it says that a checkpoint was refused.
func (w *worker) resumeToFence() {
	w.d.t.Helper()
	if err := os.WriteFile(w.halt, nil, 0o600); err != nil {
		w.d.t.Fatal(err)
	}
	w.resumeTo(saysFenced)
	if err := os.Remove(w.halt); err != nil {
		w.d.t.Fatal(err)
	}
}

// resumeTo wakes a process and waits until its log has a new line with one of the texts.
func (w *worker) resumeTo(texts ...string) {
	w.d.t.Helper()
	said := func() (n int) {
		for _, text := range texts {
			n += w.logged(text)
		}
		return n
	}
	before := said()
	w.resume()
	within(w.d.t, time.Minute, fmt.Sprintf("log %q by worker %d", texts, w.number), func() error {
		if said() == before {
			return fmt.Errorf("no new line, %d before", before)
		}
		return nil
	})
}

// rollingRestart is what an upgrade does: one process after the other ends by SIGTERM and comes back, under load.
func (s *suite) rollingRestart(t *testing.T) {
	d := s.deploy(t, s.options())
	s.disturbed(t, d, func(p *producer) {
		rounds := 2
		for i := range rounds * len(d.workers) {
			s.progress(t, d, float64(i+1)/float64(rounds*len(d.workers)+2))
			w := d.workers[i%len(d.workers)]
			begin := time.Now()
			w.stop()
			t.Logf("worker %d stopped in %v", w.number, time.Since(begin).Round(time.Millisecond))
			d.did("restart of a worker")
			w.start()
		}
	})
}
