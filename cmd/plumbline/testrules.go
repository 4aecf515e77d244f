package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// ruleSuite is a file of `plumbline test rules`.
type ruleSuite struct {
	Config        string         `yaml:"config"`        // a configuration file, relative to this one
	Configuration map[string]any `yaml:"configuration"` // or the configuration itself; neither: the defaults
	Tests         []ruleTest     `yaml:"tests"`

	dir string
	cfg config.Config
}

// ruleTest is one case.
type ruleTest struct {
	Name    string            `yaml:"name"`
	Model   string            `yaml:"model"`   // default m
	Version string            `yaml:"version"` // default 1
	Classes int               `yaml:"classes"` // default 4
	Rate    float64           `yaml:"rate"`    // rows per second of event time; default 10
	Delay   string            `yaml:"delay"`   // of labels, MIN-MAX; default 0s-10s
	Seed    uint64            `yaml:"seed"`
	Rows    []ruleRows        `yaml:"rows"`   // made, one part after another
	File    string            `yaml:"file"`   // or read: any file that replay reads, relative to this one
	Expect  []ruleExpectation `yaml:"expect"` // in any order
	// Complete says that no other alert may fire uninhibited.
	Complete bool `yaml:"complete"`
}

// ruleRows are rows of one kind. Either labels are drawn from the softmax of random logits and the scores are Sharpness times
// those, with a share Wrong of labels replaced; or all rows have one Confidence and exactly the share Accuracy of every hundred
// is right.
type ruleRows struct {
	Count      int                 `yaml:"count"`
	Sharpness  float64             `yaml:"sharpness"` // default 1, calibrated; above 1 overconfident
	Wrong      float64             `yaml:"wrong"`
	Confidence float64             `yaml:"confidence"`
	Accuracy   *float64            `yaml:"accuracy"`
	Slices     map[string][]string `yaml:"slices"` // values by column, in turn
	Only       map[string]string   `yaml:"only"`   // rows without these values are calibrated
}

// ruleExpectation is an alert that must come, or with Never may not. From and To bound its time, counted from the first row.
type ruleExpectation struct {
	Rule      string        `yaml:"rule"`
	Slice     string        `yaml:"slice"`
	State     string        `yaml:"state"` // default firing
	From      time.Duration `yaml:"from"`
	To        time.Duration `yaml:"to"` // default: the end
	Inhibited *bool         `yaml:"inhibited"`
	Never     bool          `yaml:"never"`
}

// readRuleSuite reads a file strictly.
func readRuleSuite(path string) (*ruleSuite, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &ruleSuite{dir: filepath.Dir(path)}
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(s); err != nil {
		return nil, usageErrorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	if err := s.configure(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(s.Tests) == 0 {
		return nil, usageErrorf("%s: tests: none, at least one is needed", path)
	}
	for i := range s.Tests {
		if err := s.Tests[i].check(i); err != nil {
			return nil, usageErrorf("%s: %s", path, err)
		}
	}
	return s, nil
}

func (s *ruleSuite) configure() error {
	text, name := []byte(nil), "configuration"
	var err error
	switch {
	case s.Config != "" && s.Configuration != nil:
		return errors.New("only one of config and configuration may be there")
	case s.Config != "":
		name = filepath.Join(s.dir, s.Config)
		if text, err = os.ReadFile(name); err != nil {
			return err
		}
	case s.Configuration != nil:
		if text, err = yaml.Marshal(s.Configuration); err != nil {
			return err
		}
	}
	s.cfg, err = config.Parse(text, name)
	return err
}

// check fills in the defaults and refuses what cannot be run.
func (t *ruleTest) check(i int) error {
	if t.Name == "" {
		return fmt.Errorf("tests[%d].name: must not be empty", i)
	}
	fail := func(key, format string, args ...any) error {
		return fmt.Errorf("tests[%d] %q: %s: %s", i, t.Name, key, fmt.Sprintf(format, args...))
	}
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&t.Model, "m")
	def(&t.Version, "1")
	def(&t.Delay, "0s-10s")
	if t.Classes == 0 {
		t.Classes = 4
	}
	if t.Rate == 0 {
		t.Rate = 10
	}
	switch {
	case (len(t.Rows) == 0) == (t.File == ""):
		return fail("rows", "exactly one of rows and file must be there")
	case t.Classes < 2 || t.Classes > 10_000:
		return fail("classes", "%d: must be 2 to 10000", t.Classes)
	case !(t.Rate > 0) || t.Rate > 1e6:
		return fail("rate", "%v: must be above 0 and at most 1e6 rows per second", t.Rate)
	case len(t.Expect) == 0:
		return fail("expect", "none, at least one is needed")
	}
	if _, _, err := parseDelay(t.Delay); err != nil {
		return fail("delay", "%q: must be MIN-MAX such as 0s-5m", t.Delay)
	}
	for j := range t.Rows {
		if err := t.Rows[j].check(t.Classes); err != nil {
			return fail(fmt.Sprintf("rows[%d]", j), "%s", err)
		}
	}
	for j := range t.Expect {
		e := &t.Expect[j]
		def(&e.State, "firing")
		if e.Rule == "" || !strings.Contains(" pending firing resolved ", " "+e.State+" ") || e.From < 0 || e.To != 0 && e.To < e.From {
			return fail(fmt.Sprintf("expect[%d]", j), "%+v: needs a rule, a state (pending, firing, resolved), and 0 <= from <= to", *e)
		}
	}
	return nil
}

func (r *ruleRows) check(classes int) error {
	if r.Sharpness == 0 {
		r.Sharpness = 1
	}
	switch {
	case r.Count < 1 || r.Count > 10_000_000:
		return fmt.Errorf("count: %d: must be 1 to 10000000", r.Count)
	case !(r.Sharpness > 0) || r.Sharpness > 1000:
		return fmt.Errorf("sharpness: %v: must be above 0 and at most 1000", r.Sharpness)
	case !(r.Wrong >= 0 && r.Wrong <= 1):
		return fmt.Errorf("wrong: %v: must be 0 to 1", r.Wrong)
	case (r.Confidence == 0) != (r.Accuracy == nil):
		return errors.New("confidence and accuracy: both or neither")
	case r.Accuracy != nil && !(*r.Accuracy >= 0 && *r.Accuracy <= 1):
		return fmt.Errorf("accuracy: %v: must be 0 to 1", *r.Accuracy)
	case r.Confidence != 0 && !(r.Confidence > 1/float64(classes) && r.Confidence < 1):
		return fmt.Errorf("confidence: %v: must be above 1/classes and below 1", r.Confidence)
	}
	for column, values := range r.Slices {
		if len(values) == 0 {
			return fmt.Errorf("slices: %s: no value", column)
		}
	}
	return nil
}

// ruleStart is the event time of the first row.
var ruleStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// run plays a case through one shard and one model task.
func (s *ruleSuite) run(ctx context.Context, t *ruleTest) (ruleResult, error) {
	dir, err := os.MkdirTemp("", "plumbline-test-")
	if err != nil {
		return ruleResult{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cfg := s.cfg
	cfg.Checkpoints.Dir, cfg.Join.Dir, cfg.HTTP.Listen, cfg.EventTime.IdleTimeout = dir, dir, "", 0
	f, err := s.feed(t, &cfg)
	if err != nil {
		return ruleResult{}, err
	}
	r := &replay{engine: newEngine(cfg, slog.New(slog.DiscardHandler))}
	var alerts []output.Alert
	r.listen = func(m pipeline.Message) {
		if a, ok := alertOf(m); ok {
			alerts = append(alerts, a)
		}
	}
	defer r.close()
	if err := r.open(1); err != nil {
		return ruleResult{}, err
	}
	if err := r.feed(ctx, f, newProgress(io.Discard, 0, "", "")); err != nil {
		return ruleResult{}, err
	}
	if err := r.drain(ctx, 0, r.inputs()); err != nil {
		return ruleResult{}, err
	}
	if err := r.settle(ctx); err != nil {
		return ruleResult{}, err
	}
	return t.judge(alerts), nil
}

// feed returns the messages of a case.
func (s *ruleSuite) feed(t *ruleTest, cfg *config.Config) (*feed.Feed, error) {
	lo, hi, err := parseDelay(t.Delay)
	if err != nil {
		return nil, err
	}
	o := feed.Options{Model: t.Model, Version: t.Version, Partitions: 1, EventRate: t.Rate, Start: ruleStart.UnixNano(), DelayMin: lo, DelayMax: hi,
		InlineLabels: cfg.Topics.Labels == "", FlushEvery: flushEvery(*cfg), Seed: t.Seed, End: true, Pane: cfg.EventTime.Pane}
	if t.File == "" {
		return feed.New(newRuleSource(t, cfg.Slices.Columns), o)
	}
	rows, err := (&inputFlags{}).feedRows(filepath.Join(s.dir, t.File), cfg.Slices.Columns)
	if err != nil {
		return nil, err
	}
	src, err := rows.Source(feed.Order{Repeat: 1})
	if err != nil {
		return nil, err
	}
	return feed.New(src, o)
}
