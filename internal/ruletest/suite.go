package ruletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Suite is a file of `plumbline test rules`.
type Suite struct {
	Config        string         `yaml:"config"`        // a configuration file, relative to this one
	Configuration map[string]any `yaml:"configuration"` // or the configuration itself; neither: the defaults
	Tests         []Test         `yaml:"tests"`

	dir string
	cfg config.Config
}

// errTwoConfigurations says that it is not clear which configuration a file is about.
var errTwoConfigurations = errors.New("only one of config, configuration and the flag --config may be there")

// Test is one case.
type Test struct {
	Name    string        `yaml:"name"`
	Model   string        `yaml:"model"`   // default m
	Version string        `yaml:"version"` // default 1
	Classes int           `yaml:"classes"` // default 4
	Rate    float64       `yaml:"rate"`    // rows per second of event time; default 10
	Delay   string        `yaml:"delay"`   // of labels, MIN-MAX; default 0s-10s
	Seed    uint64        `yaml:"seed"`
	Rows    []Rows        `yaml:"rows"`   // made, one part after another
	Panes   []Panes       `yaml:"panes"`  // or given as the sums of panes, one part after another
	File    string        `yaml:"file"`   // or read: any file that replay reads, relative to this one
	Expect  []Expectation `yaml:"expect"` // in any order
	// Complete says that no other alert may fire uninhibited.
	Complete bool `yaml:"complete"`

	At string // file:line
}

// Rows are rows of one kind. Either labels are drawn from the softmax of random logits and the scores are Sharpness
// times those, with a share Wrong of labels replaced; or all rows have one Confidence and exactly the share Accuracy of
// every hundred is right. A share Unlabelled of the rows never gets its label.
type Rows struct {
	Count      int                 `yaml:"count"`
	Sharpness  float64             `yaml:"sharpness"` // default 1, calibrated; above 1 overconfident
	Wrong      float64             `yaml:"wrong"`
	Confidence float64             `yaml:"confidence"`
	Accuracy   *float64            `yaml:"accuracy"`
	Slices     map[string][]string `yaml:"slices"` // values by column, in turn
	Only       map[string]string   `yaml:"only"`   // rows without these values are calibrated
	Unlabelled float64             `yaml:"unlabelled"`
	Delay      string              `yaml:"delay"` // of labels, MIN-MAX; default that of the case

	delayMin, delayMax time.Duration
}

// Expectation is an alert that must come, or with Never may not. From and To bound its time, counted from the first
// row.
type Expectation struct {
	Rule  string `yaml:"rule"`
	Slice string `yaml:"slice"`
	// pending, firing (the default), resolved; or inhibited: pending or firing, and another stands for it
	State     string        `yaml:"state"`
	From      time.Duration `yaml:"from"`
	To        time.Duration `yaml:"to"` // default: the end
	Inhibited *bool         `yaml:"inhibited"`
	Never     bool          `yaml:"never"`
	// InhibitedBy is the rule, or the whole key, of what inhibits it.
	InhibitedBy string `yaml:"inhibited_by"`
	// Direction and Bins are of the evidence of an alarm: each of Bins must be there, and with OnlyBins nothing else.
	Direction string         `yaml:"direction"`
	Bins      []expectedBins `yaml:"bins"`
	OnlyBins  bool           `yaml:"only_bins"`

	line int
}

// expectedBins are bins of the evidence inside (Lo, Hi]: one at least, and with Gap on that side only.
type expectedBins struct {
	Lo  float64 `yaml:"lo"`
	Hi  float64 `yaml:"hi"`
	Gap string  `yaml:"gap"` // below: less accurate than confident; above: more
}

// Read reads a file strictly. A file without a configuration has that of flag, the value of --config.
func Read(path, flag string) (*Suite, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b = config.WithoutMark(b)
	if err := config.CheckYAML(b); err != nil {
		return nil, invalidf("%s: %s", path, err)
	}
	s := &Suite{dir: filepath.Dir(path)}
	// the end: an empty file
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return nil, invalidf("%s%s", path, inWords(err))
	}
	lines := newYAMLLines(b)
	if err := s.configure(flag); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, max(lines.of("config"), lines.of("configuration")), err)
	}
	if len(s.Tests) == 0 {
		return nil, invalidf("%s:%d: tests: none, at least one is needed", path, lines.of("tests"))
	}
	for i := range s.Tests {
		t := &s.Tests[i]
		at := fmt.Sprintf("tests[%d]", i)
		t.At = fmt.Sprintf("%s:%d", path, lines.of(at))
		key, err := t.check()
		if err == nil {
			key, err = s.checkNames(t)
		}
		if err != nil {
			return nil, invalidf("%s:%d: %s %q: %s: %s", path, lines.of(at+"."+key), at, t.Name, key, err)
		}
		for j := range t.Expect {
			t.Expect[j].line = lines.of(fmt.Sprintf("%s.expect[%d]", at, j))
		}
	}
	return s, nil
}

// inWords says where a file is wrong, and as the configuration does, what a value of another type must be.
func inWords(err error) string {
	var other *yaml.TypeError
	if !errors.As(err, &other) {
		return ": " + yaml.FormatError(err, false, true)
	}
	value, key := other.Token, ""
	if colon := value.Prev; colon != nil && colon.Type == token.MappingValueType && colon.Prev != nil {
		key = colon.Prev.Value + ": "
	}
	return fmt.Sprintf(":%d: %s%s: %s", value.Position.Line, key, value.Value, config.MustBe(other.DstType))
}

// beside is a path that the file names, relative to it unless it is absolute.
func (s *Suite) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

// InvalidError is an error of whoever wrote a file: it cannot be run.
type InvalidError struct{ err error }

func (e InvalidError) Error() string { return e.err.Error() }
func (e InvalidError) Unwrap() error { return e.err }

func invalidf(format string, args ...any) error { return InvalidError{fmt.Errorf(format, args...)} }

// loadConfiguration reads a configuration; a file that cannot be read is invalid, too.
func loadConfiguration(path string) (config.Config, error) {
	c, err := config.Load(path)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return c, InvalidError{err}
	}
	return c, err
}

func (s *Suite) configure(flag string) (err error) {
	if s.Config != "" && s.Configuration != nil || flag != "" && (s.Config != "" || s.Configuration != nil) {
		return InvalidError{errTwoConfigurations}
	}
	switch {
	case s.Configuration != nil:
		var text []byte
		if text, err = yaml.Marshal(s.Configuration); err != nil {
			return err
		}
		s.cfg, err = config.Parse(text, "configuration")
	case s.Config != "":
		s.cfg, err = loadConfiguration(s.beside(s.Config))
	default:
		s.cfg, err = loadConfiguration(flag)
	}
	return err
}

// firstRow is the event time of the first row; of panes, firstPane is.
var firstRow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Run plays a case through one shard and one model task.
func (s *Suite) Run(ctx context.Context, t *Test) (Result, error) {
	dir, err := os.MkdirTemp("", "plumbline-test-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cfg := s.cfg
	cfg.Checkpoints.Dir, cfg.Join.Dir, cfg.HTTP.Listen, cfg.EventTime.IdleTimeout = dir, dir, "", 0
	cfg.Windows = nil // no alert depends on their snapshots, which nobody sees here and which take most of the time
	f, err := s.feed(t, &cfg)
	if err != nil {
		return Result{}, err
	}
	r := engine.NewReplay(cfg, slog.New(slog.DiscardHandler))
	var alerts []record.Alert
	r.Listen = func(m pipeline.Message) {
		if a, ok := alertOf(m); ok {
			alerts = append(alerts, a)
		}
	}
	defer r.Close()
	if err := r.Files(ctx, f, 1, nil); err != nil {
		return Result{}, err
	}
	if err := r.Settle(ctx); err != nil {
		return Result{}, err
	}
	start := firstRow
	if len(t.Panes) > 0 {
		start = firstPane(cfg.EventTime.Pane)
	}
	return t.compare(alerts, start), nil
}

// feed returns the messages of a case.
func (s *Suite) feed(t *Test, cfg *config.Config) (*feed.Feed, error) {
	o := feed.Options{Model: t.Model, Version: t.Version, Partitions: 1, EventRate: t.Rate, Start: firstRow.UnixNano(),
		InlineLabels: cfg.Topics.Labels == "", FlushEvery: feed.FlushEvery(cfg.EventTime.AllowedLateness, false),
		Seed: t.Seed,
		End:  true, Pane: cfg.EventTime.Pane}
	if len(t.Panes) > 0 {
		o.EventRate = 0 // the rows have times of their own
		return feed.New(newPaneSource(t, cfg.Slices.Columns, cfg.EventTime.Pane), o)
	}
	o.DelayMin, o.DelayMax, _ = feed.ParseDelay(t.Delay) // checked
	if t.File == "" {
		return feed.New(newRuleSource(t, cfg.Slices.Columns), o)
	}
	rows, err := feed.ReadFile(s.beside(t.File), table.Options{}, cfg.Slices.Columns)
	if err != nil {
		return nil, err
	}
	src, err := rows.Open(feed.Order{Repeat: 1})
	if err != nil {
		return nil, err
	}
	return feed.New(src, o)
}
