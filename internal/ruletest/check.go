package ruletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/plumbline/plumbline/internal/feed"
)

// yamlLines knows on which lines the keys of a file stand.
type yamlLines struct{ file *ast.File }

func newYAMLLines(text []byte) yamlLines {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return yamlLines{}
	}
	return yamlLines{file}
}

// of returns the line of a key such as tests[0].rows, or of what it is in where it is not there; 1 where nothing is
// known.
func (l yamlLines) of(key string) int {
	for l.file != nil && key != "" {
		if p, err := yaml.PathString("$." + key); err == nil {
			if n, err := p.FilterFile(l.file); err == nil && n != nil && n.GetToken() != nil &&
				n.GetToken().Position != nil {
				return n.GetToken().Position.Line
			}
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return 1
}

// defaults fills in what is left out.
func (t *Test) defaults() {
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
	for j := range t.Expect {
		def(&t.Expect[j].State, "firing")
	}
}

// check fills in the defaults and refuses what cannot be run: the key, and why.
func (t *Test) check() (key string, err error) {
	inputs := 0
	for _, there := range []bool{len(t.Rows) > 0, len(t.Panes) > 0, t.File != ""} {
		if there {
			inputs++
		}
	}
	if len(t.Panes) > 0 {
		if key, err := t.checkPanes(); err != nil {
			return key, err
		}
	}
	t.defaults()
	switch {
	case t.Name == "":
		return "name", errors.New("must not be empty")
	case inputs != 1:
		return "rows", errors.New("exactly one of rows, panes and file must be there")
	case t.Classes < 2 || t.Classes > 10_000:
		return "classes", fmt.Errorf("%d: must be 2 to 10000", t.Classes)
	case !(t.Rate > 0) || t.Rate > 1e6:
		return "rate", fmt.Errorf("%v: must be above 0 and at most 1e6 rows per second", t.Rate)
	case len(t.Expect) == 0:
		return "expect", errors.New("none, at least one is needed")
	}
	if _, _, ok := feed.ParseDelay(t.Delay); !ok {
		return "delay", fmt.Errorf("%q: must be MIN-MAX such as 0s-5m", t.Delay)
	}
	for j := range t.Rows {
		if err := t.Rows[j].check(t.Classes); err != nil {
			return fmt.Sprintf("rows[%d]", j), err
		}
	}
	for j := range t.Panes {
		if err := t.Panes[j].check(t.Classes); err != nil {
			return fmt.Sprintf("panes[%d]", j), err
		}
	}
	for j := range t.Expect {
		if err := t.Expect[j].check(); err != nil {
			return fmt.Sprintf("expect[%d]", j), err
		}
	}
	return "", nil
}

var expectedStates = []string{"pending", "firing", "resolved", "inhibited"}

func (e *Expectation) check() error {
	switch {
	case e.Rule == "":
		return errors.New("rule: must not be empty")
	case !slices.Contains(expectedStates, e.State):
		return fmt.Errorf("state: %q: must be one of %s", e.State, strings.Join(expectedStates, ", "))
	case e.From < 0 || e.To != 0 && e.To < e.From:
		return fmt.Errorf("from: %v, to: %v: must be 0 or more, and from at most to", e.From, e.To)
	case e.State == "inhibited" && e.Inhibited != nil && !*e.Inhibited:
		return errors.New("inhibited: false: state is inhibited")
	}
	for j, b := range e.Bins {
		switch {
		case !(b.Lo >= 0 && b.Lo < b.Hi && b.Hi <= 1):
			return fmt.Errorf("bins[%d]: lo: %v, hi: %v: must be 0 <= lo < hi <= 1", j, b.Lo, b.Hi)
		case b.Gap != "" && b.Gap != "below" && b.Gap != "above":
			return fmt.Errorf("bins[%d]: gap: %q: must be below or above", j, b.Gap)
		}
	}
	return nil
}

func (r *Rows) check(classes int) error {
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
	case !(r.Unlabelled >= 0 && r.Unlabelled <= 1):
		return fmt.Errorf("unlabelled: %v: must be 0 to 1", r.Unlabelled)
	case (r.Confidence == 0) != (r.Accuracy == nil):
		return errors.New("confidence and accuracy: both or neither")
	case r.Accuracy != nil && !(*r.Accuracy >= 0 && *r.Accuracy <= 1):
		return fmt.Errorf("accuracy: %v: must be 0 to 1", *r.Accuracy)
	case r.Confidence != 0 && !(r.Confidence > 1/float64(classes) && r.Confidence < 1):
		return fmt.Errorf("confidence: %v: must be above 1/classes, %.4g, and below 1", r.Confidence,
			1/float64(classes))
	}
	if r.Delay != "" {
		var ok bool
		if r.delayMin, r.delayMax, ok = feed.ParseDelay(r.Delay); !ok {
			return fmt.Errorf("delay: %q: must be MIN-MAX such as 0s-5m", r.Delay)
		}
	}
	for column, values := range r.Slices {
		if len(values) == 0 {
			return fmt.Errorf("slices: %s: no value", column)
		}
	}
	return nil
}
