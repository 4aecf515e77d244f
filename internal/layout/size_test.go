package layout

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits of size. The unit is the package: a file may be as long as its concept.
const (
	maxFiles   = 25  // of a package, tests and generated files not counted
	maxMethods = 30  // of a type, with functions that take it first, as a method would
	maxColumns = 120 // of a line; a tab counts as tabWidth
	maxParams  = 5   // of a function
	tabWidth   = 4
)

// exceptions names what may be over a limit, with the reason: "package" for its files, "package.Type" for its methods,
// "package.Function" or "package.Type.Method" for its parameters.
var exceptions = map[string]string{
	"calib/calibrator":                        "one file for each method of calibration",
	"cmd/plumbline":                           "one file for each command; a test there bounds its lines",
	"calib/calibrator.sample":                 "the rows of a fit: each method has a step of its own on them",
	"internal/asmgen/neon.asm":                "one function for each group of instructions of the assembly",
	"internal/asmgen/row.gen":                 "one method for each group of instructions of the generated assembly",
	"trainer/backend/gorgonia.products.Sgemm": "an interface of gonum's BLAS",
	"trainer/optim.step8":                     "the arguments of an assembly function",
	"trainer/backend/cuda.session":            "the one owner of device memory in a training: a method for each step",
}

// goFile is a parsed source file.
type goFile struct {
	pkg, path string
	test      bool
	src       []byte
	syntax    *ast.File
}

// goFiles are the files that people wrote.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []goFile
	walk(t, root, ".go", func(name string) {
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(src, []byte("\n// Code generated ")) || bytes.HasPrefix(src, []byte("// Code generated ")) {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, goFile{pkg: path.Dir(name), path: name, test: strings.HasSuffix(name, "_test.go"), src: src,
			syntax: syntax})
	})
	if len(out) < 100 {
		t.Fatalf("%d files found, want hundreds", len(out))
	}
	return out
}

func TestPackagesAreSmall(t *testing.T) {
	files := map[string]int{}
	for _, f := range goFiles(t) {
		if !f.test {
			files[f.pkg]++
		}
	}
	for pkg, n := range files {
		if n > maxFiles && exceptions[pkg] == "" {
			t.Errorf("%s has %d files, the most is %d: make packages of its concepts", pkg, n, maxFiles)
		}
	}
}

// receiver is the name of the type that a method is of; "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// functions calls f for every declared function that is no test, with the name that exceptions has for it.
func functions(t *testing.T, f func(pkg, typ, name string, d *ast.FuncDecl)) {
	t.Helper()
	for _, file := range goFiles(t) {
		if file.test {
			continue
		}
		for _, decl := range file.syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				typ := receiver(d)
				name := d.Name.Name
				if typ != "" {
					name = typ + "." + name
				}
				f(file.pkg, typ, file.pkg+"."+name, d)
			}
		}
	}
}

// TestNamesHaveOneMeaning: no name is both a type and a method of its package.
func TestNamesHaveOneMeaning(t *testing.T) {
	types := map[string]bool{}
	for _, file := range goFiles(t) {
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && !file.test {
				types[file.pkg+"."+spec.Name.Name] = true
			}
			_, inside := n.(*ast.FuncDecl)
			return !inside
		})
	}
	functions(t, func(pkg, typ, _ string, d *ast.FuncDecl) {
		if typ != "" && types[pkg+"."+d.Name.Name] {
			t.Errorf("%s: %s is a type, and a method of %s: rename one", pkg, d.Name.Name, typ)
		}
	})
}

// onType is the type of its package that a function without a receiver works on, as a method would: the first parameter
// but a context is a pointer to it. "" if there is none.
func onType(d *ast.FuncDecl) string {
	for _, p := range d.Type.Params.List {
		if sel, ok := p.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
			continue
		}
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			return ""
		}
		if id, ok := star.X.(*ast.Ident); ok {
			return id.Name
		}
		return ""
	}
	return ""
}

func TestTypesAreSmall(t *testing.T) {
	of := map[string]int{}
	functions(t, func(pkg, typ, _ string, d *ast.FuncDecl) {
		if typ == "" {
			typ = onType(d)
		}
		if typ != "" {
			of[pkg+"."+typ]++
		}
	})
	for typ, n := range of {
		if n > maxMethods && exceptions[typ] == "" {
			t.Errorf("%s has %d methods and functions that take it first, the most is %d: make types of its concepts",
				typ, n, maxMethods)
		}
	}
}

func TestParametersAreFew(t *testing.T) {
	functions(t, func(_, _, name string, d *ast.FuncDecl) {
		if n := d.Type.Params.NumFields(); n > maxParams && exceptions[name] == "" {
			t.Errorf("%s has %d parameters, the most is %d: some of them are one thing with a name", name, n, maxParams)
		}
	})
}

func TestLinesAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		line := 0
		lines := bufio.NewScanner(bytes.NewReader(f.src))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			line++
			text := lines.Text()
			if n := utf8.RuneCountInString(text) + (tabWidth-1)*strings.Count(text, "\t"); n > maxColumns {
				t.Errorf("%s:%d has %d columns, the most is %d", f.path, line, n, maxColumns)
			}
		}
	}
}
