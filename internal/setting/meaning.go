package setting

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"strings"
)

// documented is implemented by a struct that embeds the source file that declares it and its inner structs.
type documented interface{ Declaration() string }

// meanings holds the comments of fields by "package.Type.Field".
type meanings map[string]string

// of returns m with the comments from the source file of t, if t embeds one.
func (m meanings) of(t reflect.Type) meanings {
	d, ok := reflect.Zero(t).Interface().(documented)
	if !ok {
		return m
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", d.Declaration(),
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		panic("setting: the source of " + t.String() + ": " + err.Error())
	}
	out := maps.Clone(m)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					out[t.PkgPath()+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return out
}
