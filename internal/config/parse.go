package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/operators/model/window"
)

// Load reads the configuration file at path over the defaults. If path is "", it returns the defaults.
func Load(path string) (Config, error) {
	if path == "" {
		return Default(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(data, path)
}

// Parse decodes data over the defaults. name is the file name for messages. A key that is absent keeps its default; a
// list replaces the default list. Unknown keys, wrong types and values out of range are errors. The error is Problems
// and contains all of them.
func Parse(data []byte, name string) (Config, error) {
	data = WithoutMark(data)
	if err := CheckYAML(data); err != nil {
		return Config{}, wholeFile(name, "%v", err)
	}
	root, err := parseYAML(data, name)
	if err != nil {
		return Config{}, err
	}
	c := Default()
	d := newDecoder()
	if root != nil {
		d.document(root, &c)
	}
	c.normalise()
	problems := d.problems
	for _, p := range setting.Check(c) {
		// A value of the wrong type is already reported. The check saw its default instead.
		if !d.faulty(p.Path) {
			if text, ok := d.written(p.Path); ok {
				p.Value = text // what the environment holds may be a secret
			}
			line, column := d.place(p.Path)
			problems = append(problems, Problem{Line: line, Column: column, Problem: p})
		}
	}
	for i := range problems {
		problems[i].File = name
	}
	if err := problems.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// normalise fills in what an absent key of a list item stands for.
func (c *Config) normalise() {
	for i := range c.Windows {
		if w := &c.Windows[i]; w.Kind == window.KindTime && w.Slide == 0 {
			w.Slide = w.Size
		}
	}
}

// parseYAML returns the only document of data, or nil if data is empty.
func parseYAML(data []byte, name string) (root ast.Node, err error) {
	// The parser has panicked on odd input before, and its input comes from the user.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, wholeFile(name, "not YAML: %v", r)
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxProblem(err, name)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			ps := wholeFile(name, "a second document: a configuration is one YAML document")
			ps[0].Line, ps[0].Column = position(doc.Body)
			return nil, ps
		}
		root = doc.Body
	}
	return root, nil
}

// syntaxProblem extracts position and message from the parser's error.
func syntaxProblem(err error, name string) Problems {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return wholeFile(name, "not YAML: %s", firstLine(err.Error()))
	}
	ps := wholeFile(name, "not YAML: %s", ye.GetMessage())
	if t := ye.GetToken(); t != nil && t.Position != nil {
		ps[0].Line, ps[0].Column = t.Position.Line, t.Position.Column
	}
	return ps
}

// wholeFile returns a problem that belongs to no key.
func wholeFile(name, format string, args ...any) Problems {
	return Problems{{File: name, Problem: setting.Problem{Message: fmt.Sprintf(format, args...)}}}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// position returns the line and column at which n starts.
func position(n ast.Node) (line, column int) {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return position(m.Values[0].Key) // the mapping's own position is that of its first colon
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 0, 0
}
