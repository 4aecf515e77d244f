package ruletest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/feed"
)

// Panes are Count panes that are alike. Every one has the rows of Bins, spread evenly over its time, with labels that
// come at once: predictions and labels are in the same pane.
type Panes struct {
	Count  int               `yaml:"count"` // default 1
	Bins   []PaneBin         `yaml:"bins"`  // none: a pane without rows
	Slices map[string]string `yaml:"slices"`
}

// PaneBin is what a pane knows of the rows of one confidence.
type PaneBin struct {
	Confidence float64 `yaml:"confidence"`
	Rows       int     `yaml:"rows"`
	Correct    int     `yaml:"correct"` // of Rows
}

// rows is the number of rows of a pane.
func (p *Panes) rows() (n int) {
	for _, b := range p.Bins {
		n += b.Rows
	}
	return n
}

// maxPanes and maxPaneRows bound a case: of panes as long as it takes, of rows what rows.count allows.
const (
	maxPanes    = 1_000_000
	maxPaneRows = 10_000_000
)

func (p *Panes) check(classes int) error {
	if p.Count == 0 {
		p.Count = 1
	}
	if p.Count < 1 || p.Count > maxPanes {
		return fmt.Errorf("count: %d: must be 1 to %d", p.Count, maxPanes)
	}
	for i, b := range p.Bins {
		switch {
		case !(b.Confidence > 1/float64(classes) && b.Confidence < 1):
			return fmt.Errorf("bins[%d]: confidence: %v: must be above 1/classes, %.4g, and below 1", i, b.Confidence,
				1/float64(classes))
		case b.Rows < 1 || b.Rows > maxPaneRows:
			return fmt.Errorf("bins[%d]: rows: %d: must be 1 to %d", i, b.Rows, maxPaneRows)
		case b.Correct < 0 || b.Correct > b.Rows:
			return fmt.Errorf("bins[%d]: correct: %d: must be 0 to rows, %d", i, b.Correct, b.Rows)
		}
	}
	if p.rows() > maxPaneRows/p.Count {
		return fmt.Errorf("%d panes of %d rows: must have %d rows at most in all", p.Count, p.rows(), maxPaneRows)
	}
	return nil
}

// checkPanes refuses what a case of panes cannot have: a pane says itself when its rows and labels come.
func (t *Test) checkPanes() (key string, err error) {
	switch {
	case t.Rate != 0:
		return "rate", errors.New("must not be there beside panes, which say how many rows they have")
	case t.Delay != "":
		return "delay", errors.New("must not be there beside panes, whose labels come at once")
	}
	return "", nil
}

// paneSource makes the rows of panes.
type paneSource struct {
	test    *Test
	columns []string
	pane    arrowio.Time // length
	start   arrowio.Time // of the pane that is next
	rng     *rand.Rand
	part    int // of test.Panes
	left    int // panes of the part that are left, the one in hand included; -1 = none begun
	i       int // row of the pane
	sent    []int
	scores  []float32
	values  []string
}

// firstPane is the start of the first pane of a case: panes begin at multiples of their length.
func firstPane(pane time.Duration) time.Time {
	start := firstRow.UnixNano()
	return time.Unix(0, start+(int64(pane)-start%int64(pane))%int64(pane)).UTC()
}

func newPaneSource(t *Test, columns []string, pane time.Duration) *paneSource {
	return &paneSource{
		test:    t,
		columns: columns,
		pane:    arrowio.Time(pane),
		start:   firstPane(pane).UnixNano(),
		rng:     rand.New(rand.NewPCG(t.Seed, 1)),
		left:    -1,
		scores:  make([]float32, t.Classes),
		values:  make([]string, len(columns)),
	}
}

// Schema implements feed.Source.
func (s *paneSource) Schema() feed.Fields {
	return feed.Fields{Model: s.test.Model, Version: s.test.Version, K: s.test.Classes, Slices: s.columns, Times: true}
}

// Next implements feed.Source.
func (s *paneSource) Next(row *feed.Row) error {
	for {
		if s.part >= len(s.test.Panes) {
			return io.EOF
		}
		p := &s.test.Panes[s.part]
		if s.left < 0 {
			s.left, s.i, s.sent = p.Count, 0, make([]int, len(p.Bins))
		}
		if n := p.rows(); s.i < n {
			s.row(row, p, n)
			return nil
		}
		s.start += s.pane
		s.i = 0
		clear(s.sent)
		if s.left--; s.left == 0 {
			s.part, s.left = s.part+1, -1
		}
	}
}

// row is the next of n rows of a pane: of the bin that is furthest behind its share of the rows so far.
func (s *paneSource) row(row *feed.Row, p *Panes, n int) {
	at, most := 0, math.Inf(-1)
	for b := range p.Bins {
		rows := p.Bins[b].Rows
		behind := float64(s.i+1)*float64(rows)/float64(n) - float64(s.sent[b])
		if s.sent[b] < rows && behind > most {
			at, most = b, behind
		}
	}
	b := &p.Bins[at]
	top := s.rng.IntN(len(s.scores))
	rest := math.Log((1 - b.Confidence) / float64(len(s.scores)-1))
	for j := range s.scores {
		s.scores[j] = float32(rest)
	}
	s.scores[top] = float32(math.Log(b.Confidence))
	label := (top + 1) % len(s.scores)
	if k := s.sent[at]; (k+1)*b.Correct/b.Rows > k*b.Correct/b.Rows { // spread over the rows of the bin
		label = top
	}
	for c, column := range s.columns {
		s.values[c] = p.Slices[column]
	}
	*row = feed.Row{Scores: s.scores, Label: int32(label), Weight: 1, Slices: s.values, Served: float32(math.NaN()),
		Time: s.start + s.pane/arrowio.Time(2*n)*arrowio.Time(2*s.i+1)}
	s.sent[at]++
	s.i++
}

// checkNames refuses rules and slice columns that the configuration does not have: what is expected of them could only
// be true or false by a slip of the pen.
func (s *Suite) checkNames(t *Test) (key string, err error) {
	for i, r := range t.Rows {
		for name := range r.Slices {
			err = errors.Join(err, s.checkColumn(name))
		}
		for name := range r.Only {
			err = errors.Join(err, s.checkColumn(name))
		}
		if err != nil {
			return fmt.Sprintf("rows[%d]", i), err
		}
	}
	for i, p := range t.Panes {
		for name := range p.Slices {
			if err := s.checkColumn(name); err != nil {
				return fmt.Sprintf("panes[%d]", i), err
			}
		}
	}
	rules := s.ruleNames()
	for i, e := range t.Expect {
		if err := s.checkExpected(&e, rules); err != nil {
			return fmt.Sprintf("expect[%d]", i), err
		}
	}
	return "", nil
}

func (s *Suite) checkExpected(e *Expectation, rules []string) error {
	if !slices.Contains(rules, e.Rule) {
		return fmt.Errorf("rule: %q: must be one of the configuration's: %s", e.Rule, strings.Join(rules, ", "))
	}
	if e.Slice == "" {
		return nil
	}
	name, _, found := strings.Cut(e.Slice, "=")
	if !found {
		return fmt.Errorf("slice: %q: must be COLUMN=VALUE", e.Slice)
	}
	return s.checkColumn(name)
}

func (s *Suite) checkColumn(name string) error {
	if slices.Contains(s.cfg.Slices.Columns, name) {
		return nil
	}
	return fmt.Errorf("slice column %q: must be of slices.columns of the configuration: %q", name,
		s.cfg.Slices.Columns)
}

// alarmRules are the rules that the alarm's alerts name, by signal.
var alarmRules = map[string]string{
	"raw":        "calibration-raw",
	"calibrated": "calibration-calibrated",
	"accuracy":   "accuracy-fall",
}

// ruleNames are the rules that the configuration can raise alerts of.
func (s *Suite) ruleNames() (names []string) {
	if s.cfg.Alarm.Enabled {
		for _, signal := range s.cfg.Alarm.Signals {
			names = append(names, alarmRules[signal])
		}
	}
	for _, r := range s.cfg.Rules {
		names = append(names, r.Name)
	}
	return names
}
