package window

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Kinds of windows.
const (
	KindTime = "time"
	KindRows = "rows"
)

// Config is one window definition.
type Config struct {
	// Name in snapshots and metrics; unique.
	Name string `yaml:"name" required:"true" format:"name"`
	// time: by prediction time; rows: the latest label panes with enough labelled rows.
	Kind string `yaml:"kind" enum:"time|rows"`
	// Kind time: the length, a multiple of event_time.pane.
	Size time.Duration `yaml:"size"`
	// Kind time: distance between starts, a multiple of event_time.pane that divides size; absent: size.
	Slide time.Duration `yaml:"slide"`
	// Kind rows: smallest number of labelled rows.
	Rows int64 `yaml:"rows" min:"0" max:"1_000_000_000"`
	// Kind rows: labelled rows between windows; equal to rows: tumbling; absent: a window at each pane.
	Every int64 `yaml:"every" min:"0" max:"1_000_000_000"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	switch {
	case c.Kind == KindTime && (c.Rows != 0 || c.Every != 0):
		r.Fail("kind", c.Kind, "takes size and slide; rows and every are for kind rows")
	case c.Kind == KindRows && (c.Size != 0 || c.Slide != 0):
		r.Fail("kind", c.Kind, "takes rows and every; size and slide are for kind time")
	}
	if c.Kind == KindRows && c.Rows < 1 {
		r.Fail("rows", c.Rows, "must be 1 to 1000000000")
	}
}

// CheckPane checks the times of the window at path against the length of a pane.
func (c Config) CheckPane(r *setting.Report, path string, pane time.Duration) {
	of := func(d time.Duration) bool { return pane <= 0 || d%pane == 0 }
	switch show := setting.Show; {
	case c.Kind != KindTime:
	case c.Size <= 0 || !of(c.Size):
		r.Fail(path+".size", c.Size, "must be a multiple of event_time.pane, %s", show(pane))
	case c.Slide > 0 && (c.Size%c.Slide != 0 || !of(c.Slide)):
		r.Fail(path+".slide", c.Slide, "must divide size, %s, and be a multiple of event_time.pane, %s",
			show(c.Size), show(pane))
	}
}
