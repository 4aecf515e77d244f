package pipeline

import "math"

// punctuator tells the model tasks, through the outbox, which label panes a shard has closed.
type punctuator struct {
	watermark *Watermark
	outbox    *Outbox
	length    int64 // of a pane
}

// closed returns the first label pane still open; math.MinInt64 while nothing has been seen.
func (p *punctuator) closed() int64 {
	wm := p.watermark.Now()
	if wm == NoTime {
		return math.MinInt64
	}
	return PaneIndex(wm, p.length)
}

// tell tells what is closed: for some models, or for all if of is nil. gone are models that the shard has forgotten.
func (p *punctuator) tell(idle bool, of, gone []string) {
	p.outbox.Punctuate(Punctuation{Closed: p.closed(), Idle: idle, Apart: p.watermark.Clocks.apart(gone), Of: of})
}

// announce tells of new models. Before the first pane of a model the model tasks must know that the closed label panes
// are not closed for it.
func (p *punctuator) announce() {
	if born := p.watermark.Clocks.born; len(born) > 0 {
		p.watermark.Clocks.born = nil
		p.tell(p.outbox.idle, born, nil)
	}
}

// busy takes back that the shard is idle, and reports whether it was.
func (p *punctuator) busy() bool {
	if !p.outbox.idle {
		return false
	}
	p.tell(false, nil, nil)
	return true
}
