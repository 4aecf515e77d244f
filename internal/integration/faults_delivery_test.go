//go:build integration

package integration

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/pipeline"
)

// delivered is a deployment to which an input was sent, in half of the usual time.
func (s *suite) delivered(t *testing.T, in input) *deployment {
	t.Helper()
	d := s.deploy(t, s.options())
	d.start()
	d.ready(2 * time.Minute)
	p := d.produce(in, s.over/2)
	p.wait(t, s.over+drainLimit)
	return d
}

// duplicates sends one message in twenty twice, the second time a few messages later. What the design promises: a
// second prediction of an id that still waits is counted as a duplicate and changes nothing; a second label finds no
// prediction and changes nothing.
func (s *suite) duplicates(t *testing.T) {
	random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
	held := map[lane][]repeat{}
	sent := map[feed.Stream]int64{}
	in := s.input
	in.flush = time.Second // a repeat must come before the labels of its rows do, 10 s after the rows
	in.mangle = func(stream feed.Stream, partition int32, m feed.Message) []feed.Message {
		l := lane{stream, partition}
		var out []feed.Message
		if m.Value != nil {
			out = append(out, m)
		}
		var wait []repeat
		for _, r := range held[l] {
			if r.after <= m.Time {
				out = append(out, r.message)
				sent[stream] += int64(r.message.Rows)
			} else {
				wait = append(wait, r)
			}
		}
		if m.Value != nil && random.IntN(20) == 0 {
			wait = append(wait, repeat{m, m.Time + random.Int64N(int64(4*time.Second))})
		}
		held[l] = wait
		return out
	}
	d := s.delivered(t, in)
	rows := in.total()
	v := s.drained(d, rows)
	d.stop()
	d.did("%d rows sent twice", sent[feed.Logits]+sent[feed.Labels])
	t.Logf("%d predictions and %d labels were sent twice", sent[feed.Logits], sent[feed.Labels])
	if sent[feed.Logits] == 0 || sent[feed.Labels] == 0 {
		t.Error("nothing was sent twice: the test did not test it")
	}
	got := d.result(v)
	if n, detail := pipeline.Unaccounted(got.counts); n != 0 {
		t.Errorf("the counts do not add up: %s", detail)
	}
	for name, want := range map[string]int64{"predictions": rows, "duplicates": sent[feed.Logits], "labels": rows +
		sent[feed.Labels],
		"joined": rows, "labelled": rows, "late": 0, "rejected": 0} {
		if got.counts[name] != want {
			t.Errorf("count %s: got %d, want %d", name, got.counts[name], want)
		}
	}
	got.counts = s.want.counts
	compare(t, got, s.want)
	s.quiet(t, d)
}

type lane struct {
	stream    feed.Stream
	partition int32
}

type repeat struct {
	message feed.Message
	after   int64
}

// reordered shuffles the messages of each partition inside of six seconds of event time: with the second that a row
// waits for its message that is less than the allowed lateness, 10 s, so that no row is late.
func (s *suite) reordered(t *testing.T) {
	random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
	const span = int64(6 * time.Second)
	held := map[lane][]feed.Message{}
	moved := 0
	in := s.input
	in.flush = time.Second
	in.mangle = func(stream feed.Stream, partition int32, m feed.Message) []feed.Message {
		l := lane{stream, partition}
		var out []feed.Message
		if h := held[l]; len(h) > 0 && m.Time-h[0].Time > span {
			out = h
			byTime(out)
			random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			for i := 1; i < len(out); i++ {
				if out[i].Time < out[i-1].Time {
					moved++
				}
			}
			held[l] = nil
		}
		if m.Value != nil {
			held[l] = append(held[l], m)
		}
		return out
	}
	d := s.delivered(t, in)
	d.did("%d messages before an older one", moved)
	if moved == 0 {
		t.Error("nothing came out of order: the test did not test it")
	}
	s.finish(t, d)
}
