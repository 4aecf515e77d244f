package engine

import (
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// PauseStatus is the object "paused" of /api/v1/status and the answer of POST /api/v1/pause.
type PauseStatus struct {
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	// Settled: everything that was read is in checkpoints, and all that comes of it is written.
	Settled bool `json:"settled"`
}

// Pauser pauses and resumes reading. Tasks keep their partitions, and tasks that come later start paused.
type Pauser struct {
	gate kafkaio.Gate
	mu   sync.Mutex
	now  *PauseStatus // nil = not paused
}

// Pause implements web.Control. If the process is paused already, the first author and reason stay.
func (p *Pauser) Pause(by, why string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.Close() {
		p.now = &PauseStatus{Since: time.Now().UTC().Truncate(time.Millisecond), By: by, Why: why}
	}
	return p.answer()
}

// Resume implements web.Control.
func (p *Pauser) Resume() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = nil
	p.gate.Open()
	return p.answer()
}

// paused returns the state, nil where the process is not paused.
func (p *Pauser) paused() *PauseStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return nil
	}
	s := *p.now
	s.Settled = p.gate.Settled()
	return &s
}

func (p *Pauser) answer() map[string]any {
	if p.now == nil {
		return map[string]any{"paused": nil}
	}
	s := *p.now
	s.Settled = p.gate.Settled()
	return map[string]any{"paused": &s}
}
