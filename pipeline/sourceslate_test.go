package pipeline

import (
	"math/rand/v2"
	"testing"
)

// lateStage plays the repartition stage: it reads sources into the log of one keyed partition, each in order and all
// at once, is stopped or killed at any time, and starts again some time later where it had committed.
type lateStage struct {
	rng     *rand.Rand
	tick    int64
	sources []*lateSource
	log     []lateMessage
	down    int  // ticks until it runs again
	running bool // has begun
}

type lateSource struct {
	share           float64 // of ticks at which it has a row
	rows            []Time
	read, committed int
	last            int64 // tick of its last row
	idle            bool
}

type lateMessage struct {
	p    Provenance
	news string // of idleness
	ts   Time
}

const (
	latePane     = 100 // in event time, of which a tick is 10
	lateAllowed  = 60  // by how much rows of a source are out of order
	lateSilent   = 8   // ticks without a row after which it is idle
	lateDownMost = 40
)

func (l *lateStage) tell(i int, idle string) {
	s := l.sources[i]
	s.idle = idle == "1"
	l.log = append(l.log, lateMessage{p: from(int32(i), int32(len(l.sources)), int64(s.read), 0), news: idle})
}

// step is one tick: rows come to the sources, and the stage, if it runs, relays what it gets to. Of a backlog that is
// some of each source, so that they come to be far apart.
func (l *lateStage) step() {
	l.tick++
	for _, s := range l.sources {
		if l.rng.Float64() < s.share {
			s.rows, s.last = append(s.rows, 10*l.tick-l.rng.Int64N(lateAllowed+1)), l.tick
		}
	}
	if l.down--; l.down > 0 {
		return
	}
	if !l.running {
		l.running = true
		for i, s := range l.sources {
			s.read = s.committed
			l.tell(i, "0")
		}
	}
	backlog := false
	for _, s := range l.sources {
		backlog = backlog || len(s.rows)-s.read > 1
	}
	for _, i := range l.rng.Perm(len(l.sources)) {
		s := l.sources[i]
		n := len(s.rows) - s.read
		if backlog {
			n = min(n, l.rng.IntN(12))
		}
		for range n {
			l.log = append(l.log, lateMessage{p: from(int32(i), int32(len(l.sources)), int64(s.read), 0),
				ts: s.rows[s.read]})
			s.read++
			s.idle = false
		}
		if l.rng.IntN(3) == 0 {
			s.committed = s.read
		}
		if !backlog && !s.idle && l.tick-s.last > lateSilent {
			s.committed = s.read
			l.tell(i, "1")
		}
	}
	if l.rng.IntN(30) == 0 {
		l.end()
	}
}

// end stops the stage, which says what is to be said then, or kills it.
func (l *lateStage) end() {
	kill := l.rng.IntN(2) == 0
	for i, s := range l.sources {
		if kill {
			continue
		}
		s.committed = s.read
		if s.idle {
			l.tell(i, "0")
		}
	}
	l.running, l.down = false, 1+l.rng.IntN(lateDownMost)
}

// TestRestartsOfSourcesMakeNothingLate: sources whose rows are out of order by the allowed lateness and no more have
// none that is late, however often the stage is stopped or killed, how long it is away, and how far apart it then reads
// them, also where one was idle. The first source is never idle by itself: where all are, the pane of the newest row is
// closed.
func TestRestartsOfSourcesMakeNothingLate(t *testing.T) {
	taken, repeats, silences := 0, 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		l := &lateStage{rng: rng, sources: []*lateSource{{share: 1}, {share: .5}, {share: .05}}}
		w, at, quiet := NewWatermark(1, lateAllowed), 0, 0
		for l.tick < 1500 {
			l.step()
			if at == len(l.log) {
				if quiet++; quiet == lateSilent {
					silences++
					w.Idle(Logits)
					w.Advance(latePane)
				}
				continue
			}
			quiet = 0
			for ; at < len(l.log); at++ {
				m := l.log[at]
				if m.news != "" {
					if err := w.sourceIdle(Logits, m.p, m.news == "1"); err != nil {
						t.Fatal(err)
					}
				} else if src, fresh, err := w.source(Logits, m.p); err != nil {
					t.Fatal(err)
				} else if fresh {
					taken++
					if wm := w.Now(); wm != NoTime && PaneIndex(m.ts, latePane) < PaneIndex(wm, latePane) {
						t.Fatalf("seed %d: the row of source %d at %d came when the watermark was %d", seed,
							m.p.Partition, m.ts, wm)
					}
					w.Observe(Logits, m.ts)
					src.newest = max(src.newest, m.ts)
				} else {
					repeats++
				}
				w.Advance(latePane)
			}
		}
		if wm, most := w.Now(), 10*l.tick; l.down <= 0 && wm < most-10*lateDownMost*20 {
			t.Errorf("seed %d: the watermark is %d at %d: nothing moves it", seed, wm, most)
		}
	}
	if taken < 50_000 || repeats < 1000 || silences < 100 {
		t.Errorf("%d rows taken, %d repeats, %d silences: too few to show anything", taken, repeats, silences)
	}
}
