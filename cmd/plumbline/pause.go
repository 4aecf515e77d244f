package main

import (
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// pauseStatus is the object "paused" of /api/v1/status and the answer of POST /api/v1/pause.
type pauseStatus struct {
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	// Settled: everything that was read is in checkpoints, and all that comes of it is written.
	Settled bool `json:"settled"`
}

// pauser is whether this process reads. Tasks keep their partitions, and ones that come later begin paused.
type pauser struct {
	gate kafkaio.Gate
	mu   sync.Mutex
	now  *pauseStatus // nil = not paused
}

// Pause implements web.Control. A process that is paused already stays so, with what was said first.
func (p *pauser) Pause(by, why string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.Close() {
		p.now = &pauseStatus{Since: time.Now().UTC().Truncate(time.Millisecond), By: by, Why: why}
	}
	return p.view()
}

// Resume implements web.Control.
func (p *pauser) Resume() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = nil
	p.gate.Open()
	return p.view()
}

// paused returns the state, nil where the process is not paused.
func (p *pauser) paused() *pauseStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return nil
	}
	s := *p.now
	s.Settled = p.gate.Settled()
	return &s
}

func (p *pauser) view() map[string]any {
	if p.now == nil {
		return map[string]any{"paused": nil}
	}
	s := *p.now
	s.Settled = p.gate.Settled()
	return map[string]any{"paused": &s}
}
