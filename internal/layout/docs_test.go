package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
