package inputs

import (
	"math"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
)

// mapping is what of a record goes into which column, compiled from a Config.
type mapping struct {
	kind    arrowio.Kind
	side    arrowio.Side
	columns []*column
	root    *node
	// outside are the columns from headers, attributes and the key.
	outside []outsider
	def     defaults
	lists   int // nodes whose items are rows
}

type outsider struct {
	path path
	*column
}

// node is a place in the value.
type node struct {
	names   []string // of kids
	kids    []*node
	last    [maxPlaces]int8 // which kid was at each place of an object before
	items   map[int]*node
	each    *node
	tensors bool // its kids are tensors of a list, by their names
	list    int  // which of the lists each is
	columns []*column
	below   []*column // all columns at and below
}

// NoPath is the path of a column that records do not have, whatever the format's default.
const NoPath = "-"

// defaults are the paths of a format's columns; "" = the column's own name where own, else none.
type defaults struct {
	own     bool
	tensors bool // paths of two names may be tensors
	paths   map[string]string
}

// wanted is a column of the configuration.
type wanted struct {
	name, path string
	kind       kind
	role       role
}

// role is what a column is for.
type role uint8

// The scores are in the order of arrowio.ScoreForms.
const (
	cohort role = iota // of slices, any number of columns
	roleID
	roleTS
	roleLogits
	roleProbs
	roleLogit
	roleProb
	roleLabel
	roleFeatures
	roleModel
	roleVersion
	roleServed
	roleWeight
	roles
)

func wantedOf(c *Config) []wanted {
	p := &c.Columns
	return []wanted{
		{"id", p.ID, ident, roleID},
		{"ts", p.TS, instant, roleTS},
		{"logits", p.Logits, vector, roleLogits},
		{"probs", p.Probs, vector, roleProbs},
		{"logit", p.Logit, number, roleLogit},
		{"prob", p.Prob, number, roleProb},
		{"label", p.Label, class, roleLabel},
		{"features", p.Features, vector, roleFeatures},
		{"model", p.Model, text, roleModel},
		{"version", p.Version, text, roleVersion},
		{"served", p.Served, number, roleServed},
		{"weight", p.Weight, number, roleWeight},
	}
}

// compile makes the mapping of an input; slices are the names of the slice columns.
func compile(c *Config, sliceNames []string) (*mapping, *pathError) {
	def := formats[c.Format].defaults
	m := &mapping{kind: c.Kind(), side: c.side(), root: &node{}, def: def}
	scored := c.Columns.Logits+c.Columns.Probs+c.Columns.Logit+c.Columns.Prob != ""
	for _, w := range wantedOf(c) {
		if m.kind == arrowio.Labels && !slices.Contains([]string{"id", "ts", "label", "model", "version"}, w.name) {
			if w.path != "" {
				return nil, &pathError{w.name, w.path, "has no effect on rows that are labels"}
			}
			continue
		}
		if m.side == arrowio.Request && !slices.Contains(ofRequests, w.name) {
			continue
		}
		if w.path == "" {
			own := def.own && (!scored || !isScore(w.name))
			if w.path = def.paths[w.name]; w.path == "" && own {
				w.path = w.name
			}
		}
		if w.path == "" || w.path == NoPath {
			continue
		}
		if err := m.add(w, c.Classes); err != nil {
			return nil, err
		}
	}
	if err := m.addSlices(c, def, sliceNames); err != nil {
		return nil, err
	}
	return m, m.check(c)
}

// ofRequests are the columns of requests, beside slices.
var ofRequests = []string{"id", "ts", "model", "features", "weight"}

func isScore(name string) bool {
	return slices.ContainsFunc(arrowio.ScoreForms, func(f arrowio.ScoreForm) bool { return f.Column == name })
}

func (m *mapping) addSlices(c *Config, def defaults, names []string) *pathError {
	paths := map[string]string{}
	for _, s := range c.Columns.Slices {
		if names != nil && !slices.Contains(names, s.Column) {
			return &pathError{"slices", s.Column, "must be one of slices.columns: " + strings.Join(names, ", ")}
		}
		if paths[s.Column] != "" {
			return &pathError{"slices", s.Column, "must be there once"}
		}
		paths[s.Column] = s.Path
	}
	if names == nil {
		for name := range paths {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	if m.kind == arrowio.Labels {
		return nil
	}
	for _, name := range names {
		w := wanted{name, paths[name], text, cohort}
		if w.path == "" {
			if !def.own {
				continue
			}
			w.path = `"` + strings.ReplaceAll(name, `"`, "") + `"`
		}
		if err := m.add(w, nil); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a mapping of which no record could become rows.
func (m *mapping) check(c *Config) *pathError {
	has := func(name string) bool {
		return slices.ContainsFunc(m.columns, func(c *column) bool { return c.name == name })
	}
	switch {
	case c.Format == formatArrow:
		return nil
	case m.kind == arrowio.Labels && !has("id"):
		return &pathError{"id", "", "must say where the id of a label is"}
	case m.kind == arrowio.Labels && !has("label"):
		return &pathError{"label", "", "must say where the label is"}
	case m.side != arrowio.Whole && !has("id"):
		return &pathError{"id", "", "must say where the id is that requests and responses have in common"}
	case m.kind == arrowio.Predictions && m.side != arrowio.Request &&
		!slices.ContainsFunc(m.columns, func(c *column) bool { return isScore(c.name) }):
		return &pathError{"probs", "", "must say where the scores are, or another of logits, probs, logit and prob"}
	case m.kind == arrowio.Predictions && !has("model") && c.Model == "":
		return &pathError{"model", "", "must say where the model is, or the input's key model which it is"}
	}
	return nil
}

// add puts a column at its path.
func (m *mapping) add(w wanted, classes []string) *pathError {
	paths := []string{w.path}
	if w.kind == vector {
		paths = splitPaths(w.path)
	}
	for i, s := range paths {
		c := &column{cells: cells{name: w.name, role: w.role, path: s, kind: w.kind}, part: -1, classes: classes,
			numbered: numbered(classes)}
		if len(paths) > 1 {
			c.part = i
		}
		p, err := parsePath(s)
		if err != nil {
			return &pathError{w.name, s, err.Error()}
		}
		m.columns = append(m.columns, c)
		tensors := m.tensors(&p)
		if p.from != "" {
			if w.kind == vector {
				return &pathError{w.name, s, "must be in the record's value"}
			}
			m.outside = append(m.outside, outsider{p, c})
			continue
		}
		if why := m.root.place(m, p.steps, c); why != "" {
			return &pathError{w.name, s, why}
		}
		if tensors {
			m.root.kid(p.steps[0].field).tensors = true
		}
	}
	return nil
}

// tensors makes the items of a tensor rows, and reports whether it is one of a list: outputs.NAME, where the format has
// tensors. Seldon's is data.tensor.
func (m *mapping) tensors(p *path) bool {
	if !m.def.tensors || p.from != "" || len(p.steps) != 2 || p.steps[0].kind != field || p.steps[1].kind != field {
		return false
	}
	first, second := p.steps[0].field, p.steps[1].field
	if listed := first == "outputs" || first == "inputs"; listed || first == "data" && second == "tensor" {
		p.steps = append(p.steps, step{kind: each})
		return listed
	}
	return false
}

// place adds a column below a node; why is not empty where that cannot be.
func (n *node) place(m *mapping, steps []step, c *column) (why string) {
	n.below = append(n.below, c)
	if len(steps) == 0 {
		if len(n.kids)+len(n.items) > 0 || n.each != nil {
			return "must not be a field that other columns are inside of"
		}
		n.columns = append(n.columns, c)
		return ""
	}
	if len(n.columns) > 0 {
		return "must not be inside of the field of another column"
	}
	var next *node
	switch s := steps[0]; s.kind {
	case each:
		if n.each == nil {
			n.each, n.list = &node{}, m.lists
			m.lists++
		}
		next = n.each
	case item:
		if n.items == nil {
			n.items = map[int]*node{}
		}
		if n.items[s.item] == nil {
			n.items[s.item] = &node{}
		}
		next = n.items[s.item]
	default:
		if next = n.kid(s.field); next == nil {
			next = &node{}
			n.names, n.kids = append(n.names, s.field), append(n.kids, next)
		}
	}
	if n.each != nil && len(n.items) > 0 {
		return "must not be one item of a list whose items are rows"
	}
	return next.place(m, steps[1:], c)
}

// kid is the node of a field; nil = no column is there.
func (n *node) kid(name string) *node {
	for i, s := range n.names {
		if s == name {
			return n.kids[i]
		}
	}
	return nil
}

// maxPlaces is at how many places of an object a node remembers its kids.
const maxPlaces = 16

// kidAt is the node of the field at a place of an object. Objects of one producer have their fields in one order.
func (n *node) kidAt(place int, name []byte) *node {
	if place < maxPlaces {
		if i := int(n.last[place]); i < len(n.names) && n.names[i] == string(name) {
			return n.kids[i]
		}
	}
	i := n.index(name)
	if i < 0 {
		return nil
	}
	if place < maxPlaces && i <= math.MaxInt8 {
		n.last[place] = int8(i)
	}
	return n.kids[i]
}

// kidOf is kidAt of a field whose place says nothing.
func (n *node) kidOf(name []byte) *node {
	if i := n.index(name); i >= 0 {
		return n.kids[i]
	}
	return nil
}

func (n *node) index(name []byte) int {
	for i, s := range n.names {
		if s == string(name) {
			return i
		}
	}
	return -1
}

// scores are the columns of the first form of scores that has any.
func (c *collector) scores() (arrowio.ScoreForm, []*column) {
	for i, f := range arrowio.ScoreForms {
		if cols := c.by[roleLogits+role(i)]; slices.ContainsFunc(cols, func(c *column) bool { return c.some }) {
			return f, cols
		}
	}
	return arrowio.ScoreForm{}, nil
}
