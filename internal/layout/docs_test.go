package layout

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	linkText   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headline   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```")
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	linkInHead = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// slug is the anchor that a headline gets, the n-th of its text.
func slug(head string, n int) string {
	s := linkInHead.ReplaceAllString(head, "$1")
	s = strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(s)), ""), " ", "-")
	if n > 0 {
		s += "-" + strconv.Itoa(n)
	}
	return s
}

func anchors(text string) map[string]bool {
	out, seen := map[string]bool{}, map[string]int{}
	for _, m := range headline.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		base := slug(m[1], 0)
		out[slug(m[1], seen[base])] = true
		seen[base]++
	}
	return out
}

// walk calls f with the slash-separated paths of the repository's own files that end in ext.
func walk(t *testing.T, root, ext string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" ||
			name == "target") {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ext) {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			f(filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSlugs(t *testing.T) {
	text := "# A `b/c` and, d\n## Same\n```\n# not one\n```\n## Same\n### See [x](y.md), λ\n"
	want := map[string]bool{"a-bc-and-d": true, "same": true, "same-1": true, "see-x-λ": true}
	got := anchors(text)
	if len(got) != len(want) {
		t.Errorf("anchors are %v, want %v", got, want)
	}
	for a := range want {
		if !got[a] {
			t.Errorf("anchors are %v, without %s", got, a)
		}
	}
}

// TestLinks looks where every relative link of every document leads.
func TestLinks(t *testing.T) {
	root, links := filepath.Join("..", ".."), 0
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	walk(t, root, ".md", func(path string) {
		text := read(path)
		for _, m := range linkText.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: link to %s, which is not there", path, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(to, ".md") && !anchors(read(to))[anchor] {
				t.Errorf("%s: link to %s: %s has no such headline", path, m[1], to)
			}
		}
	})
	if links < 100 {
		t.Errorf("%d links found, want hundreds", links)
	}
}

// document is the text of a file, by its path from the root of the repository.
func document(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sortedAlike compares the names that a document lists with those of the source.
func sortedAlike(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s has %s, which is not there", what, name)
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is without %s", what, name)
		}
	}
	if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
		t.Errorf("%s has %d names twice", what, len(got)-n)
	}
}

func firstGroups(text, pattern string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// between is the part of a text from one mark to the next.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, text, ok := strings.Cut(text, from)
	text, _, end := strings.Cut(text, to)
	if !ok || !end {
		t.Fatalf("no part from %q to %q", from, to)
	}
	return text
}

// TestListOfPackages: docs/architecture.md has one line for each package; those of the module bench share one.
func TestListOfPackages(t *testing.T) {
	want := []string{"bench"}
	for _, p := range list(t) {
		want = append(want, strings.TrimPrefix(p.path, module+"/"))
	}
	lines := between(t, document(t, "docs/architecture.md"), "\n## Packages\n", "\n## ")
	sortedAlike(t, "docs/architecture.md: the list of packages", firstGroups(lines, "(?m)^- `([^`]+)`: "), want)
}

// TestDependenciesAreDescribed: docs/architecture.md names what ours import of others, and says why.
func TestDependenciesAreDescribed(t *testing.T) {
	_, text, _ := strings.Cut(document(t, "docs/architecture.md"), "\n## Dependencies\n")
	named, missing := firstGroups(text, "`([^`]+)`"), map[string]bool{}
	for _, p := range list(t) {
		for _, imp := range p.imports {
			described := func(name string) bool { return strings.Contains("/"+imp+"/", "/"+name+"/") }
			if !allowed(imp, []string{"..."}, []string{}) && !slices.ContainsFunc(named, described) {
				missing[imp] = true
			}
		}
	}
	for _, imp := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("docs/architecture.md: Dependencies is without %s: what for, and what else was weighed", imp)
	}
}

// wordLimits are the most words of documents, as wc -w counts them.
var wordLimits = map[string]int{"docs/architecture.md": 3500, "docs/benchmarks.md": 2500}

// mostWords is the limit of all documents together.
const mostWords = 40000

// counted reports whether a document belongs to those that a reader is expected to find everything in. Guides for
// other products, tables of results and what a release holds do not.
func counted(path string) bool {
	for _, part := range []string{"docs/integrations/", "bench/results/", "dist/"} {
		if strings.HasPrefix(path, part) {
			return false
		}
	}
	return true
}

// TestDocumentsAreShort counts the words of the documents. Say a thing once, and link to it.
func TestDocumentsAreShort(t *testing.T) {
	words, total := map[string]int{}, 0
	walk(t, filepath.Join("..", ".."), ".md", func(path string) {
		if !counted(path) {
			return
		}
		n := len(strings.Fields(document(t, path)))
		words[path], total = n, total+n
		if limit, ok := wordLimits[path]; ok && n > limit {
			t.Errorf("%s has %d words, the most is %d", path, n, limit)
		}
	})
	for path := range wordLimits {
		if words[path] == 0 {
			t.Errorf("%s is not there", path)
		}
	}
	longest := slices.SortedFunc(maps.Keys(words), func(a, b string) int { return words[b] - words[a] })
	if len(longest) < 15 {
		t.Fatalf("only %v counted: there are more", longest)
	}
	t.Logf("%d words", total)
	if total > mostWords {
		t.Errorf("the documents have %d words, the most is %d. The longest:", total, mostWords)
		for _, path := range longest[:6] {
			t.Errorf("%6d %s", words[path], path)
		}
	}
}

// TestReasonsAreDocumented: docs/schema.md lists the reasons for which rows and messages are refused.
func TestReasonsAreDocumented(t *testing.T) {
	const constant = `(?m)^\t\w+ += "(\w+)" +//`
	schema := document(t, "docs/schema.md")
	rows := document(t, "arrowio/batch.go") + document(t, "operators/validate/validate.go")
	const listed = "(?m)^- `(\\w+)`"
	sortedAlike(t, "docs/schema.md: the list of reasons for rows",
		firstGroups(between(t, schema, "\n### Rows\n", "\n### "), listed), firstGroups(rows, `(?m)^\t\w+ += "(\w+)"`))
	inputs := "" // all files: each format may have reasons of its own
	walk(t, filepath.Join("..", "..", "pipeline", "inputs"), ".go", func(path string) {
		inputs += document(t, "pipeline/inputs/"+path)
	})
	messages := firstGroups(document(t, "arrowio/wire/error.go")+
		document(t, "pipeline/kafkaio/recordset/recordset.go"), constant)
	messages = append(messages, firstGroups(inputs, `(?m)^(?:const |\t)(?:Not\w+|BadSchema) = "(\w+)"`)...)
	sortedAlike(t, "docs/schema.md: the list of reasons for messages",
		firstGroups(between(t, schema, "\n### Messages\n", "\n## "), listed), messages)
}

// TestNamedTestsExist: what documents and the Makefile run is there, in the package that they name.
func TestNamedTestsExist(t *testing.T) {
	root, defined := filepath.Join("..", ".."), map[string][]string{}
	walk(t, root, "_test.go", func(path string) {
		for _, name := range firstGroups(document(t, path), `(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`) {
			defined[name] = append(defined[name], "./"+filepath.ToSlash(filepath.Dir(path)))
		}
	})
	checked := 0
	walk(t, root, ".md", func(path string) {
		for _, name := range firstGroups(document(t, path), `\b((?:Test|Benchmark|Fuzz)[A-Z]\w+)`) {
			if checked++; defined[name] == nil {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	})
	command := regexp.MustCompile(`go test [^\n]*-(?:run|bench) '\^?(\w+)\$*'[^\n]* (\./\S*[^/\s])/?(?:\s|$)`)
	for _, m := range command.FindAllStringSubmatch(document(t, "Makefile"), -1) {
		if checked++; !slices.Contains(defined[m[1]], m[2]) {
			t.Errorf("Makefile: %s is in %v, not in %s", m[1], defined[m[1]], m[2])
		}
	}
	if checked < 9 {
		t.Errorf("%d names looked at: there are more", checked)
	}
}

// TestNamedTargetsExist: every `make …` of a document is a target of the Makefile.
func TestNamedTargetsExist(t *testing.T) {
	rules := document(t, "Makefile") + document(t, "release.mk") + document(t, "deploy.mk")
	targets := firstGroups(rules, `(?m)^([a-z][a-z0-9-]*):`)
	checked := 0
	walk(t, filepath.Join("..", ".."), ".md", func(path string) {
		for _, name := range firstGroups(document(t, path), "(?:`|\\n    |\\n)make ([a-z][a-z0-9-]*)") {
			if checked++; !slices.Contains(targets, name) {
				t.Errorf("%s: make %s is no target", path, name)
			}
		}
	})
	if checked < 20 {
		t.Errorf("%d targets looked at: there are more", checked)
	}
}

// TestNamedLogLinesExist: the log lines that docs/operations.md explains are in the program.
func TestNamedLogLinesExist(t *testing.T) {
	lines := between(t, document(t, "docs/operations.md"), "\n## What the log says\n", "\n## ")
	var source strings.Builder
	walk(t, filepath.Join("..", ".."), ".go", func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			source.WriteString(document(t, path))
		}
	})
	checked := 0
	for line := range strings.Lines(lines) {
		item, _, ok := strings.Cut(line, "`: ")
		if !ok || !strings.HasPrefix(item, "- ") {
			continue
		}
		for _, text := range firstGroups(item+"`", "`([^`]+)`") {
			if checked++; !strings.Contains(source.String(), `"`+text) {
				t.Errorf("docs/operations.md explains the log line %q, which nothing writes", text)
			}
		}
	}
	if checked < 9 {
		t.Errorf("%d log lines looked at: there are more", checked)
	}
}
