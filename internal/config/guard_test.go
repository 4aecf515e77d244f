package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
)

// TestHostileYAML: what would take the parser gigabytes, its stack or minutes is refused before it is parsed.
func TestHostileYAML(t *testing.T) {
	testsize.Slow(t)
	merges := "kafka:\n  tls: &a0 {enabled: true}\n"
	hostile := map[string]string{
		"sequences in each other":    strings.Repeat("[", 100_000),
		"mappings in each other":     strings.Repeat("{a: ", 50_000),
		"dashes":                     strings.Repeat("- ", 50_000),
		"question marks":             "a:\n" + strings.Repeat("? ", 50_000),
		"indentation":                indented(400),
		"more bytes than are read":   merges + strings.Repeat("# nothing\n", 100_000),
		"more keys than are counted": strings.Repeat("k: 1\n", 200_000),
		"keys in one mapping":        "{" + strings.Repeat("k,", 100_000) + "}",
	}
	for name, text := range hostile {
		_, err := Parse([]byte(text), "x.yaml")
		if err == nil || !strings.Contains(err.Error(), "levels in each other") &&
			!strings.Contains(err.Error(), "are read") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	var unknown strings.Builder
	for i := range maxEntries - 1 {
		fmt.Fprintf(&unknown, "k%d: 1\n", i)
	}
	var problems Problems
	if _, err := Parse([]byte(unknown.String()), "x.yaml"); !errors.As(err, &problems) ||
		len(problems) != maxProblems {
		t.Errorf("unknown keys: %d problems, want %d", len(problems), maxProblems)
	}
	for _, fine := range []string{"", "kafka: {brokers: [\"a:1\"]} # [[[\n", "models:\n  - name: a\n    classes: 3\n"} {
		if err := CheckYAML([]byte(fine)); err != nil {
			t.Errorf("%q: %v", fine, err)
		}
	}
	t.Run("processor time", func(t *testing.T) {
		for name, text := range hostile {
			if took := processorTime(t, text); took > 5*time.Second {
				t.Errorf("%s: refused after %s", name, took)
			}
		}
		if took := processorTime(t, unknown.String()); took > 20*time.Second { // it is about 1.5 s
			t.Errorf("%d unknown keys take %s", maxEntries, took)
		}
	})
}

// processorTime is that of a configuration, which is refused.
func processorTime(t *testing.T, text string) time.Duration {
	before := testsize.Processor(t)
	if _, err := Parse([]byte(text), "x.yaml"); err == nil {
		t.Error("it is taken")
	}
	return testsize.Processor(t) - before
}

func indented(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

// TestEndlessFile: of a file without an end no more than the bound is read.
func TestEndlessFile(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "are read") {
		t.Errorf("%v", err)
	}
}
