package engine

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
)

// TestListOfSections compares the list in docs/format.md with the sections that a shard and a model task write when
// everything optional is configured.
func TestListOfSections(t *testing.T) {
	cfg := config.Default()
	cfg.Checkpoints.Dir, cfg.Archive.Directory, cfg.Heads.Shadow = t.TempDir(), t.TempDir(), true
	cfg.Calibrated.Enabled = true
	rt := New(cfg, slog.New(slog.DiscardHandler))
	shard, err := rt.NewShard(0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shard.Close() }()
	text, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	for task, sections := range map[string][]pipeline.Section{
		"Shard":      shard.Sections(),
		"Model task": rt.NewModelTask(0, pipeline.NewCounts()).Sections(),
	} {
		_, list, ok := strings.Cut(string(text), "\n- "+task+": ")
		if !ok {
			t.Errorf("docs/format.md has no list for %q", task)
			continue
		}
		list, _, _ = strings.Cut(list, "\n")
		var documented, written []string
		listed := regexp.MustCompile("`([^`]+)` ([0-9]+(?: \\(reads [0-9]+\\))?)")
		for _, m := range listed.FindAllStringSubmatch(list, -1) {
			documented = append(documented, m[1]+" "+m[2])
		}
		for _, s := range sections {
			w := fmt.Sprint(s.Name, " ", s.Version)
			if s.Oldest > 0 {
				w += fmt.Sprintf(" (reads %d)", s.Oldest)
			}
			written = append(written, w)
		}
		slices.Sort(documented)
		slices.Sort(written)
		if !slices.Equal(documented, written) {
			t.Errorf("docs/format.md lists for %q\n%q, the code writes\n%q", task, documented, written)
		}
	}
}
