//go:build integration

package integration

import (
	"slices"
	"testing"
	"time"
)

// metamorphic draws what must not matter: how many rows a message has, how many partitions the topics, how many
// processes there are, how often they save, how much they hold in memory, and when they are killed. No byte of a state,
// snapshot or calibrator may differ.
func (s *suite) metamorphic(t *testing.T) {
	variants := 2
	if s.full {
		variants = 6
	}
	for range variants {
		in := s.input
		in.partitions = 1 + s.random.IntN(9)
		in.batch = []int{20, 100, 1000}[s.random.IntN(3)]
		in.flush = s.during(2500*time.Millisecond) + 500*time.Millisecond
		o := s.options()
		o.partitions, o.processes = in.partitions, 1+s.random.IntN(4)
		o.interval = 20*time.Millisecond + s.during(3*time.Second)
		o.store = []string{"directory", "topic"}[s.random.IntN(2)]
		o.memory = []int{0, 32 << 10, 1 << 20, 32 << 20}[s.random.IntN(4)]
		kills := make([]float64, s.random.IntN(4)) // after which share of the rows
		for i := range kills {
			kills[i] = 0.9 * s.random.Float64()
		}
		slices.Sort(kills)
		over := s.over/4 + s.during(s.over/2)
		t.Run("variant", func(t *testing.T) {
			d := s.deploy(t, o)
			d.did("%d partitions, messages of at most %d rows and %v, %d processes, checkpoints every %v in a %s, "+
				"%d bytes of waiting rows in memory, kills after %.2f of the rows",
				in.partitions, in.batch, in.flush.Round(time.Millisecond), o.processes,
				o.interval.Round(time.Millisecond), o.store, o.memory, kills)
			d.start()
			d.ready(2 * time.Minute)
			p := d.produce(in, over)
			for _, share := range kills {
				s.progress(t, d, share)
				w := d.workers[s.random.IntN(len(d.workers))]
				w.kill()
				w.start()
			}
			p.wait(t, over+drainLimit)
			s.finish(t, d)
		})
	}
}
