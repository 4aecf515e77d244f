package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/plumbline/plumbline/internal/setting"
)

// variable is ${NAME}, ${NAME:-default} or the $${ that stands for ${ itself.
var variable = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}|\$\{`)

// textOf is the text of a node that has one.
func textOf(n ast.Node) (text string, ok bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.LiteralNode:
		return t.Value.Value, true
	}
	return "", false
}

// expand puts what the environment holds in the places of the variables in text.
func expand(text string) (string, error) {
	var err error
	out := variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		switch name, hasDefault := m[1], m[2] != ""; {
		case found == "$${":
			return "${"
		case name == "":
			err = fmt.Errorf("must have variables as ${NAME} or ${NAME:-default}, and $${ for ${ itself")
		default:
			value := os.Getenv(name)
			if value == "" && !hasDefault {
				err = fmt.Errorf("the environment variable %s is not set; ${%s:-default} has a default", name, name)
			}
			if value == "" {
				value = m[3]
			}
			return value
		}
		return ""
	})
	return out, err
}

// fromEnvironment decodes a text with variables into v: a value of any kind, or a list of them with commas between. The
// value itself is never in an error: it may be a secret.
func (d *decoder) fromEnvironment(text, path string, v reflect.Value) {
	value, err := expand(text)
	if err != nil {
		d.fail(path, text, "%v", err)
		return
	}
	d.named[path] = text
	if section := v.Kind() == reflect.Struct ||
		v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct; section {
		d.fail(path, text, "must not be a variable: it is a section with keys of its own")
		return
	}
	parsed, err := setting.ParseValue(value, v.Type())
	if err != nil {
		must := mustBe(path)
		if v.Kind() == reflect.Slice {
			must = "must be a list with commas between; each item " + must
		}
		d.fail(path, text, "what the environment holds %s", must)
		return
	}
	v.Set(parsed)
}

// written is the text with variables at path, or at the list that path is an item of.
func (d *decoder) written(path string) (text string, ok bool) {
	if text, ok = d.named[path]; ok {
		return text, true
	}
	if i := strings.LastIndexByte(path, '['); i > 0 {
		text, ok = d.named[path[:i]]
	}
	return text, ok
}
