package progress

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/plumbline/plumbline/internal/printable"
)

// Bar is a bar on a terminal, and nothing elsewhere. A nil Bar is nothing too.
type Bar struct {
	bar  *progressbar.ProgressBar
	done chan struct{} // closed by Finish; nil where nothing ticks
}

// New shows how many of total units are done, on w where that is a terminal; total < 0 is unknown.
func New(w io.Writer, total int64, what, unit string) *Bar {
	f, ok := printable.Raw(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Bar{bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionShowIts(),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)}
}

// Steps shows how many of a few long steps are done, and that time passes.
func Steps(w io.Writer, total int, what string) *Bar {
	f, ok := printable.Raw(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	p := &Bar{done: make(chan struct{}), bar: progressbar.NewOptions(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionClearOnFinish(),
	)}
	go p.tick()
	return p
}

// tick shows the bar again and again until Finish.
func (p *Bar) tick() {
	const interval = 200 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			_ = p.bar.RenderBlank()
		}
	}
}

// Add counts n more units. A terminal that cannot be written to stops no work.
func (p *Bar) Add(n int64) {
	if p != nil {
		_ = p.bar.Add64(n)
	}
}

// Say changes what the bar says is being done, and shows it at once.
func (p *Bar) Say(what string) {
	if p != nil {
		p.bar.Describe(what)
		_ = p.bar.RenderBlank()
	}
}

// Finish takes the bar away.
func (p *Bar) Finish() {
	if p == nil {
		return
	}
	if p.done != nil {
		close(p.done)
	}
	_ = p.bar.Finish()
}
