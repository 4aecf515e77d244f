//go:build integration

package integration

import (
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

// zombie stops a process for longer than the session timeout; the others take its tasks, and when it wakes it finds
// its checkpoint numbers taken. The last one wakes when everything is done: nothing that it still writes may change
// what is there.
func (s *suite) zombie(t *testing.T, o deployOptions) {
	d := s.deploy(t, o)
	s.disturbed(t, d, func(p *producer) {
		for i, share := range []float64{0.1, 0.5} {
			s.progress(t, d, share)
			w := d.workers[i%len(d.workers)]
			w.pause()
			d.did("SIGSTOP of a worker for %v", away)
			time.Sleep(away)
			w.resume()
			d.ready(2 * time.Minute)
		}
		s.progress(t, d, 0.85)
		w := d.workers[2%len(d.workers)]
		w.pause()
		d.did("SIGSTOP of a worker until all is done")
		p.wait(t, s.over+drainLimit)
		d.without(w).drain(s.input.total(), s.input.total(), drainLimit)
		w.resume()
		time.Sleep(2 * time.Second) // time to write what it had in hand
	})
	if n := d.logged("another process has taken over"); n == 0 {
		t.Error("no log line tells of a fenced process: the test did not test it")
	} else {
		t.Logf("%d fenced checkpoints", n)
	}
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
