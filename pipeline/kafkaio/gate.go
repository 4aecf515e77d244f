package kafkaio

import (
	"context"
	"sync"
	"time"
)

// Gate stops all sources of a process and lets them continue. It affects neither group membership nor records that
// were handed out. A nil Gate is always open. Sources that are made while it is closed start stopped.
type Gate struct {
	mu      sync.Mutex
	opened  chan struct{} // closed when the gate opens; nil while it is open
	sources map[*Source]bool
}

// Close stops the sources; false if they were stopped already.
func (g *Gate) Close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		return false
	}
	g.opened = make(chan struct{})
	for s := range g.sources {
		s.news.tell()
	}
	return true
}

// Open lets the sources go on; false if they were not stopped.
func (g *Gate) Open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		return false
	}
	close(g.opened)
	g.opened = nil
	return true
}

// wait returns a channel that is closed when the gate opens, nil while it is open.
func (g *Gate) wait() <-chan struct{} {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

// Settled reports whether everything that the sources have handed out is in durable checkpoints, and all outputs are
// written.
func (g *Gate) Settled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sources {
		if !s.settled() {
			return false
		}
	}
	return true
}

func (g *Gate) add(s *Source) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sources == nil {
		g.sources = map[*Source]bool{}
	}
	g.sources[s] = true
}

func (g *Gate) remove(s *Source) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sources, s)
}

// endPoll is how often a fetcher asks for the log's end while the gate is closed, so that its lag is seen to grow.
const endPoll = 2 * time.Second

// waitOpen waits until the gate is open or ctx is done.
func (f *fetcher) waitOpen(ctx context.Context) {
	for {
		opened := f.gate.wait()
		if opened == nil {
			return
		}
		if _, end, err := Bounds(ctx, f.client, f.topic, f.partition); err == nil {
			f.end.Store(end)
		}
		t := time.NewTimer(endPoll)
		select {
		case <-opened:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}
