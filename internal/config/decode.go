package config

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/plumbline/plumbline/internal/setting"
)

var durationType = reflect.TypeFor[time.Duration]()

// decoder writes a YAML tree into a Config. It remembers the position of every key, so that later checks can name it.
// It continues after a problem, so that all problems are reported.
type decoder struct {
	problems Problems
	places   map[string][2]int // line and column by path
	wrong    map[string]bool   // paths with a problem
	named    map[string]string // texts with variables of the environment, as written, by path
	anchors  map[string]ast.Node
	values   int // decoded so far
}

func newDecoder() *decoder {
	return &decoder{places: map[string][2]int{}, wrong: map[string]bool{}, named: map[string]string{},
		anchors: map[string]ast.Node{}}
}

// document decodes the root.
func (d *decoder) document(root ast.Node, c *Config) {
	line, column := position(root)
	d.places[""] = [2]int{line, column}
	d.value(root, "", reflect.ValueOf(c).Elem())
}

// place returns the line and column of the key at path, or of the nearest key above it that is in the file.
func (d *decoder) place(path string) (line, column int) {
	for {
		if p, ok := d.places[path]; ok {
			return p[0], p[1]
		}
		if path == "" {
			return 1, 1
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// faulty reports whether path, or a section that contains it, could not be decoded.
func (d *decoder) faulty(path string) bool {
	for path != "" {
		if d.wrong[path] {
			return true
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.wrong[""]
}

func (d *decoder) fail(path, value, format string, args ...any) {
	if len(d.problems) >= maxProblems {
		return
	}
	line, column := d.place(path)
	d.wrong[path] = true
	d.problems = append(d.problems, Problem{
		Line: line, Column: column,
		Problem: setting.Problem{Path: path, Value: value, Message: fmt.Sprintf(format, args...)},
	})
}

// value decodes n into v, the value at path.
func (d *decoder) value(n ast.Node, path string, v reflect.Value) {
	if d.values++; d.values > maxValues {
		if d.values == maxValues+1 {
			d.fail(path, "", "the file stands for more than %d values", maxValues)
		}
		return
	}
	if a, ok := n.(*ast.AnchorNode); ok {
		d.value(a.Value, path, v)
		// The anchor is stored only after its value, so that no alias inside the value can refer back to it.
		d.anchors[a.Name.String()] = a.Value
		return
	}
	n = d.resolve(n, path)
	if n == nil {
		return
	}
	if text, ok := textOf(n); ok && strings.Contains(text, "${") {
		d.fromEnvironment(text, path, v)
		return
	}
	switch {
	case v.Type() == durationType:
		d.duration(n, path, v)
	case v.Kind() == reflect.Struct:
		d.section(n, path, v)
	case v.Kind() == reflect.Slice:
		d.list(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

// resolve returns what an alias refers to, or nil after a problem.
func (d *decoder) resolve(n ast.Node, path string) ast.Node {
	switch t := n.(type) {
	case *ast.AliasNode:
		target, ok := d.anchors[t.Value.String()]
		if !ok {
			d.fail(path, "*"+t.Value.String(), "no anchor &%s before it", t.Value.String())
			return nil
		}
		return d.resolve(target, path)
	case *ast.AnchorNode, *ast.TagNode:
		d.fail(path, written(n), "must be a plain value")
		return nil
	}
	return n
}

// section decodes a mapping into a struct. If a section is empty, because all of its keys are commented out, it keeps
// its defaults.
func (d *decoder) section(n ast.Node, path string, v reflect.Value) {
	if _, ok := n.(*ast.NullNode); ok {
		return
	}
	m, ok := n.(ast.MapNode)
	if !ok {
		d.fail(path, written(n), "must be a mapping with the keys %s", strings.Join(setting.Keys(v.Type()), ", "))
		return
	}
	for it := m.MapRange(); it.Next(); { // merged keys first, because the section's own keys override them
		if _, ok := it.Key().(*ast.MergeKeyNode); ok {
			if from := d.resolve(it.Value(), path); from != nil {
				d.section(from, path, v)
			}
		}
	}
	empty := "" // path of the key before the current one, where that has no value
	for it := m.MapRange(); it.Next() && len(d.problems) < maxProblems; {
		key := it.Key()
		if _, ok := key.(*ast.MergeKeyNode); ok {
			continue
		}
		name := keyText(key)
		sub := setting.Join(path, name)
		line, column := position(key)
		d.places[sub] = [2]int{line, column}
		i := setting.Index(v.Type(), name)
		if i < 0 {
			d.fail(sub, "", "unknown key; %s", suggest(v.Type(), empty, name))
			continue
		}
		empty = ""
		if _, none := it.Value().(*ast.NullNode); none {
			empty = sub
		}
		d.value(it.Value(), sub, v.Field(i))
	}
}

// list decodes a sequence. It replaces the default list. Every item starts from its defaults.
func (d *decoder) list(n ast.Node, path string, v reflect.Value) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(path, written(n), "must be a list; [] for none, leave the key out for the default")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values))
	for i, item := range s.Values {
		sub := setting.Item(path, i)
		line, column := position(item)
		d.places[sub] = [2]int{line, column}
		out.Index(i).Set(setting.DefaultOf(v.Type().Elem()))
		d.value(item, sub, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) duration(n ast.Node, path string, v reflect.Value) {
	s, ok := n.(*ast.StringNode)
	if !ok && written(n) == "0" {
		v.SetInt(0)
		return
	}
	var parsed time.Duration
	var err error
	if ok {
		parsed, err = time.ParseDuration(s.Value)
	}
	if !ok || err != nil {
		d.fail(path, written(n), "%s", mustBe(path))
		return
	}
	v.SetInt(int64(parsed))
}

func (d *decoder) scalar(n ast.Node, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		switch t := n.(type) {
		case *ast.StringNode:
			v.SetString(t.Value)
			return
		case *ast.LiteralNode:
			v.SetString(t.Value.Value)
			return
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			d.fail(path, written(n), `must be text; write "%s" in quotes`, written(n))
			return
		}
		d.fail(path, written(n), "must be text; in quotes where it has a colon")
	case reflect.Bool:
		if t, ok := n.(*ast.BoolNode); ok {
			v.SetBool(t.Value)
			return
		}
		d.fail(path, written(n), "%s", mustBe(path))
	case reflect.Int, reflect.Int64:
		d.wholeNumber(n, path, v)
	case reflect.Float64:
		if f, ok := float(n); ok {
			v.SetFloat(f)
			return
		}
		d.fail(path, written(n), "%s", mustBe(path))
	default:
		panic("config: no decoding of " + v.Type().String() + " at " + path)
	}
}

// wholeNumber decodes a number, which may have a unit of bytes as one of the environment may.
func (d *decoder) wholeNumber(n ast.Node, path string, v reflect.Value) {
	if i, ok := integer(n); ok {
		if digits := n.GetToken().Value; setting.OldOctal(digits) {
			d.fail(path, written(n), "must not begin with 0: that is base 8 to some readers and 10 to others")
			return
		}
		v.SetInt(i)
		return
	}
	if text, ok := textOf(n); ok && setting.HasByteUnit(text) {
		if parsed, err := setting.ParseValue(text, v.Type()); err == nil {
			v.Set(parsed)
			return
		}
	}
	d.fail(path, written(n), "%s", mustBe(path))
}

func integer(n ast.Node) (int64, bool) {
	t, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch i := t.Value.(type) {
	case int64:
		return i, true
	case uint64:
		return int64(i), i <= math.MaxInt64
	}
	return 0, false
}

func float(n ast.Node) (float64, bool) {
	if t, ok := n.(*ast.FloatNode); ok {
		return t.Value, true
	}
	i, ok := integer(n)
	return float64(i), ok
}

// written returns n as in the file, shortened.
func written(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "no value"
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "a mapping"
	}
	s := strings.TrimSpace(firstLine(n.String()))
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// keyText returns the text of a mapping key.
func keyText(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(key.String())
}
