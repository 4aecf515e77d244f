package inputs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A path is where a column is in a record:
//
//	path  = [ "header:" | "event:" | "record:" ] NAME | step { "." step }
//	step  = ( NAME | '"' any text '"' ) { "[" NUMBER "]" } [ "[]" ]
//
// One step at most has [], whose items are rows. A path may begin with [NUMBER] or [].
type path struct {
	from  string // header, event, record; "" = the value
	name  string // with from
	steps []step
}

// step goes one level deeper: into a field, an item, or each item.
type step struct {
	field string
	item  int // with kind item
	kind  stepKind
}

type stepKind uint8

const (
	field stepKind = iota
	item
	each
)

// places are those outside of the value.
var places = []string{"header", "event", "record"}

// pathError says which path is wrong.
type pathError struct{ column, path, why string }

func (e *pathError) Error() string { return fmt.Sprintf("column %s: %q %s", e.column, e.path, e.why) }

func parsePath(s string) (p path, err error) {
	if from, name, ok := strings.Cut(s, ":"); ok && slices.Contains(places, from) {
		if name == "" || from == "record" && name != "key" && name != "time" {
			return p, fmt.Errorf("must be header:NAME, event:NAME, record:key or record:time")
		}
		return path{from: from, name: name}, nil
	}
	rest := s
	for first := true; rest != "" || first; first = false {
		if !first {
			if rest[0] != '.' && rest[0] != '[' {
				return p, fmt.Errorf("must have a dot between names")
			}
			rest = strings.TrimPrefix(rest, ".")
		}
		if rest, err = p.next(rest); err != nil {
			return p, err
		}
	}
	if n := p.rows(); n > 1 {
		return p, fmt.Errorf("must have [] once at most: items of items are no rows")
	}
	if len(p.steps) > maxSteps {
		return p, fmt.Errorf("has %d steps, at most %d", len(p.steps), maxSteps)
	}
	return p, nil
}

const maxSteps = 32

// next reads one name or index.
func (p *path) next(s string) (rest string, err error) {
	switch {
	case strings.HasPrefix(s, "["):
		inner, rest, ok := strings.Cut(s[1:], "]")
		if !ok {
			return "", fmt.Errorf("has a [ without its ]")
		}
		if inner == "" {
			p.steps = append(p.steps, step{kind: each})
			return rest, nil
		}
		n, err := strconv.Atoi(inner)
		if err != nil || n < 0 || n >= 1<<20 {
			return "", fmt.Errorf("must have nothing, or a number from 0, in [%s]", inner)
		}
		p.steps = append(p.steps, step{kind: item, item: n})
		return rest, nil
	case strings.HasPrefix(s, `"`):
		name, rest, ok := strings.Cut(s[1:], `"`)
		if !ok {
			return "", fmt.Errorf("has a quote without its end")
		}
		p.steps = append(p.steps, step{field: name})
		return rest, nil
	}
	end := strings.IndexAny(s, ".[")
	if end < 0 {
		end = len(s)
	}
	if end == 0 {
		return "", fmt.Errorf("must have a name at each level, such as request.id")
	}
	p.steps = append(p.steps, step{field: s[:end]})
	return s[end:], nil
}

// rows is how many steps have each item as a row.
func (p *path) rows() int {
	n := 0
	for _, s := range p.steps {
		if s.kind == each {
			n++
		}
	}
	return n
}

// splitPaths cuts a list of paths at the commas outside of quotes.
func splitPaths(s string) []string {
	var out []string
	quoted, from := false, 0
	for i, c := range s {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			out, from = append(out, strings.TrimSpace(s[from:i])), i+1
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}
