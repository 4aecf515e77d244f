package loss

import (
	"fmt"
	"strconv"
	"strings"
)

// parsed is one term of the text, weight*name{options}(of).
type parsed struct {
	weight  float64
	name    string
	options map[string]string
	of      *parsed
}

// Parse makes a loss of text: terms joined by +, each [weight*]name[{key:value,…}][(name…)], where only classwise, aurc
// and au take an inner loss in parentheses (one that is a mean over rows; cross-entropy unless given).
// Errors name the term, the key, its value and what is allowed.
func Parse(text string) (*Loss, error) {
	s := scanner{text: text}
	l := &Loss{}
	var names []string
	for {
		p, err := s.readTerm()
		if err != nil {
			return nil, err
		}
		t, name, err := build(p)
		if err != nil {
			return nil, err
		}
		if p.weight != 1 {
			name = strconv.FormatFloat(p.weight, 'g', -1, 64) + "*" + name
		}
		l.terms, names = append(l.terms, weighted{p.weight, t}), append(names, name)
		if s.done() {
			break
		}
		if !s.take('+') {
			return nil, s.fail("+ or the end")
		}
	}
	l.text, l.parts = strings.Join(names, " + "), make([]float64, len(l.terms))
	return l, nil
}

// scanner reads the text from left to right.
type scanner struct {
	text string
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) done() bool {
	s.space()
	return s.at == len(s.text)
}

func (s *scanner) take(c byte) bool {
	if s.done() || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) fail(allowed string) error {
	got := "the end"
	if s.at < len(s.text) {
		got = strconv.Quote(s.text[s.at:min(s.at+12, len(s.text))])
	}
	return fmt.Errorf("loss %q: offset %d: %s, allowed %s", s.text, s.at, got, allowed)
}

// word reads a name, a number or another value: what stands before one of the marks.
func (s *scanner) word(marks string) string {
	s.space()
	from := s.at
	for s.at < len(s.text) && strings.IndexByte(marks, s.text[s.at]) < 0 {
		s.at++
	}
	return strings.TrimSpace(s.text[from:s.at])
}

// maxNesting bounds the losses inside losses: none takes one that takes another.
const maxNesting = 2

func (s *scanner) readTerm() (parsed, error) { return s.nested(0) }

func (s *scanner) nested(depth int) (parsed, error) {
	p := parsed{weight: 1}
	if depth == 0 {
		if err := s.weight(&p); err != nil {
			return p, err
		}
	}
	if p.name = s.word("*{}(),:+"); p.name == "" {
		return p, s.fail("the name of a loss")
	}
	if s.take('{') {
		if err := s.readOptions(&p); err != nil {
			return p, err
		}
	}
	if s.take('(') {
		if depth == maxNesting {
			return p, s.fail("no further loss inside this one")
		}
		of, err := s.nested(depth + 1)
		if err != nil {
			return p, err
		}
		p.of = &of
		if !s.take(')') {
			return p, s.fail(")")
		}
	}
	return p, nil
}

// weight reads the number before a *, or nothing. The number may have a + of its own, as in 1e+06; a + that is not
// inside a number ends the term.
func (s *scanner) weight(p *parsed) error {
	start := s.at
	w := s.word("*{}(),:")
	v, err := strconv.ParseFloat(w, 64)
	switch {
	case !s.take('*') || err != nil && strings.Contains(w, "+"):
		s.at = start
		return nil
	case err != nil || !(v >= 0 && v <= maxWeight):
		return fmt.Errorf("loss %q: weight %q, allowed 0..%g", s.text, w, maxWeight)
	}
	p.weight = v
	return nil
}

func (s *scanner) readOptions(p *parsed) error {
	p.options = map[string]string{}
	for !s.take('}') {
		key := s.word("*{}(),:+")
		if key == "" || !s.take(':') {
			return s.fail("key:value")
		}
		if _, twice := p.options[key]; twice {
			return fmt.Errorf("loss %s: %s given twice, allowed once", p.name, key)
		}
		p.options[key] = s.word("{}(),:") // a value may be 1e+3
		if !s.take(',') && (s.done() || s.text[s.at] != '}') {
			return s.fail(", or }")
		}
	}
	return nil
}
