package metrics

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names are the distinct first groups of a pattern's matches.
func names(text, pattern string) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	return out
}

func sameNames(t *testing.T, what string, got, want map[string]bool) {
	t.Helper()
	for _, n := range slices.Sorted(maps.Keys(got)) {
		if !want[n] {
			t.Errorf("%s: %s is too much", what, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(want)) {
		if !got[n] {
			t.Errorf("%s: %s is missing", what, n)
		}
	}
}

// everything are the names of all metrics of a process where everything that can have a value has one.
func everything(t *testing.T) (text string, own map[string]bool) {
	h := history.New(history.Config{})
	h.AddSnapshot(fullSnapshot())
	pooled := fullSnapshot()
	pooled.Slice, pooled.PooledValues = "region=~other", 7
	h.AddSnapshot(pooled)
	h.AddAlert(record.Alert{Model: "m", Version: "v", Rule: "r", Severity: "warning", State: "firing",
		Since: moment("2026-01-31T00:00:00Z"), At: moment("2026-01-31T00:00:10Z")})
	h.AddCalibrator(record.Calibrator{Model: "m", Version: "v", Reason: "alarm", Published: true,
		DecidedAt: moment("2026-01-31T00:00:10Z")})
	text = scrape(t, h, fullStatus())
	own = names(text, `(?m)^plumbline_(\w+)[{ ]`)
	// The command has collectors of its own, which every process exports.
	// So have the archive, latencies and traces.
	more := []string{"../archive/sweep.go", "latency.go", "../otlp/exporter.go"}
	for _, f := range append(sources(t, "../../cmd", "../../internal"), more...) {
		for name := range names(read(t, f),
			`(?:prometheus\.NewDesc\("plumbline_|= desc\("|Name:\s+"plumbline_)(\w+)"`) {
			own[name] = true
			text += "plumbline_" + name + " 0\n"
		}
	}
	return text, own
}

// sources are the Go files below dirs that are no tests.
func sources(t *testing.T, dirs ...string) []string {
	t.Helper()
	var out []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				out = append(out, path)
			}
			return err
		})
		if err != nil || len(out) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(out), err)
		}
	}
	return out
}

// fullStatus has a value in every field that is exported.
func fullStatus() *pipeline.TaskStatus {
	return &pipeline.TaskStatus{
		Task:      "shard",
		Partition: 1,
		Next:      map[string]int64{"logits": 1},
		WM:        1e18,
		CaughtUp:  true,
		Counts:    map[string]int64{"predictions": 1, "waiting": 1, "archive_waiting:memory": 1},
	}
}

// TestEveryMetricIsDocumented: the lists of docs/metrics.md have the exported metrics and events, all of them and no
// others.
func TestEveryMetricIsDocumented(t *testing.T) {
	_, doc, ok := strings.Cut(read(t, "../../docs/metrics.md"), "\n## Prometheus: `/metrics`\n")
	if !ok {
		t.Fatal("docs/metrics.md has no section of the metrics")
	}
	doc, events, ok := strings.Cut(doc, "The values of `event`")
	if !ok {
		t.Fatal("docs/metrics.md has no list of the events")
	}
	_, own := everything(t)
	for _, f := range sources(t, ".") {
		for name := range names(read(t, f), `= desc\("(\w+)"`) {
			if !own[name] {
				t.Errorf("%s: %s has no value in everything: give it one in fullSnapshot, or in what it is of", f, name)
			}
		}
	}
	sameNames(t, "metrics in docs/metrics.md", items(doc), own)
	sameNames(t, "events in docs/metrics.md", items(events), counted(t))
}

// items are the names that the items of lists begin with, before labels in brackets and the meaning.
func items(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		if item, ok := strings.CutPrefix(line, "- "); ok {
			item, _, _ = strings.Cut(item, ": ")
			item, _, _ = strings.Cut(item, " (")
			maps.Copy(out, names(item, "`([a-z_]+)`"))
		}
	}
	return out
}

// counted are the names of the counts in the source: they become the values of the label event.
func counted(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for _, f := range sources(t, "../../pipeline", "../../operators") {
		maps.Copy(out, names(read(t, f), `\b[cC]ount[A-Z]\w*\s+= "(\w+)"`))
	}
	for name := range waitingKinds {
		delete(out, name)
	}
	return out
}

// foreign are the metrics of the rules that others export: Prometheus itself, and node_exporter.
var foreign = map[string]bool{"up": true, "node_filesystem_avail_bytes": true, "node_filesystem_size_bytes": true}

// TestRulesNameWhatIsExported: a rule on a metric, or on an event, that does not exist would never fire.
func TestRulesNameWhatIsExported(t *testing.T) {
	rules := regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(read(t, "../../deploy/prometheus/rules.yml"), "")
	text, _ := everything(t)
	all := names(text, `(?m)^(\w+)[{ ]`)
	used := names(rules, `\b((?:plumbline|process|go|node)_\w+)`)
	maps.Copy(used, names(rules, `\b(up)\{`))
	if len(used) < 15 {
		t.Fatalf("only %d metrics found in the rules", len(used))
	}
	for name := range used {
		if !all[name] && !foreign[name] {
			t.Errorf("the rules use %s, which is not exported", name)
		}
	}
	known := counted(t)
	for list := range names(rules, `event=~?"([\w|]+)"`) {
		for name := range strings.SplitSeq(list, "|") {
			if !known[name] {
				t.Errorf("the rules use the event %s, which is not counted", name)
			}
		}
	}
}

// TestEveryAlertHasATestAndARunbook: docs/operations.md says what to do about each alert, and promtool has tried each.
func TestEveryAlertHasATestAndARunbook(t *testing.T) {
	rules := read(t, "../../deploy/prometheus/rules.yml")
	alerts := names(rules, `- alert: (\w+)`)
	tests := read(t, "../../deploy/prometheus/rules_test.yml") + read(t, "../../deploy/prometheus/rules_hours_test.yml")
	sameNames(t, "alerts that promtool sees fire", names(tests, `(?m)alertname: (\w+)\n\s+exp_alerts:`), alerts)
	sameNames(t, "alerts with a section in docs/operations.md", names(read(t, "../../docs/operations.md"),
		`(?m)^### (Plumbline\w+)$`), alerts)
	linked := map[string]bool{}
	for name := range alerts {
		linked[strings.ToLower(name)] = true
	}
	sameNames(t, "links to the runbook", names(rules, `runbook_url: https://\S+/docs/operations\.md#(\w+)`), linked)
}
