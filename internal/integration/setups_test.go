//go:build integration

package integration

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plumbline/plumbline/pipeline/record"
)

// setupRows is the rows of each stream.
const setupRows = 1000

// keys is a configuration, or a section of one.
type keys map[string]any

// setups are those that documents name in words, by where; the files of examples/config are found.
var setups = map[string]string{
	"README quick start":            "",
	"schema inline labels":          "topics: {labels: ''}",
	"operations topic store":        "checkpoints: {store: topic}",
	"operations watermark records":  "event_time: {idle_timeout: 0s}",
	"operations slices and archive": "slices: {columns: [region]}\narchive: {directory: a}",
	"schema inputs in Arrow":        "inputs: [{topic: a, format: arrow}, {topic: b, rows: labels, format: arrow}]",
	"schema keyed":                  "topics: {keyed: true}",
	"http ingest keyed":             "http: {ingest: true}\ntopics: {keyed: true}",
	"http ingest":                   "http: {ingest: true}",
	"http OTLP":                     "http: {ingest: true}",
	"http ingest beside inputs":     "http: {ingest: true}\ninputs: [{topic: a, model: m}]",
	"train heads":                   "trigger: {enabled: true}\nheads: {shadow: true}",
	"operations calibrated output":  "calibrated: {enabled: true}",
}

// TestSetups runs every documented set-up: topics are made, rows go in, and the numbers that come out are those of
// `plumbline eval`.
func TestSetups(t *testing.T) {
	t.Parallel()
	all := maps.Clone(setups)
	files, err := filepath.Glob(filepath.Join(root, "examples", "config", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("examples/config: %d files, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(f)] = string(text)
	}
	rows := setupFile(t)
	var offline record.Metrics
	runJSON(t, &offline, "eval", rows, "--json", "--bins", "15")
	python := sync.OnceValue(func() string {
		return pythonWith(t, "-r", filepath.Join("testdata", "requirements-inputs.txt"))
	})
	two := make(chan struct{}, 2) // of them at a time
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			two <- struct{}{}
			defer func() { <-two }()
			s := setUp(t, all[name])
			s.python = python
			runOK(t, "topics", "create", "-c", s.file)
			p := run(t, s)
			switch {
			case strings.HasSuffix(name, "OTLP"):
				sendOTLP(t, s)
			case !sendHTTP(t, s) && !sendInputs(t, s):
				runOK(t, "produce", "-c", s.file, rows, "--model", "digits", "--start", start.Format(time.RFC3339))
			}
			if s.registry != nil {
				waitsForSchema(t, s)
			}
			p.wait(time.Minute, "count the rows", func() bool { return setUpDone(t, s) })
			p.stop()
			compareSetUp(t, s, &offline)
			if strings.HasSuffix(name, "-requests.yaml") {
				compareRegions(t, s)
			}
		})
	}
}

// setupFile writes the rows as CSV, for produce and for eval.
func setupFile(t *testing.T) string {
	t.Helper()
	return setupRowsFile(t, func(int) string { return "north" }, "north")
}

// setupRowsFile writes those of a region.
func setupRowsFile(t *testing.T, regionOf func(i int) string, region string) string {
	t.Helper()
	data := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	name := filepath.Join(t.TempDir(), "digits.csv")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := csv.NewWriter(f)
	line := []string{"label", "region"}
	for k := range data.K {
		line = append(line, "logits_"+strconv.Itoa(k))
	}
	err = w.Write(line)
	for i := 0; err == nil && i < setupRows; i++ {
		if regionOf(i) != region {
			continue
		}
		line = append(line[:0], strconv.Itoa(int(data.Label[i])), region)
		for _, z := range data.Scores[i*data.K : (i+1)*data.K] {
			line = append(line, strconv.FormatFloat(float64(z), 'g', -1, 64)) // eval reads what the stream has
		}
		err = w.Write(line)
	}
	w.Flush()
	if err != nil || w.Error() != nil {
		t.Fatal(err, w.Error())
	}
	return name
}

// setUp makes a set-up one of this broker: what it says stays, but for brokers and how to reach them, names of topics,
// directories and ports. One window more holds all rows.
func setUp(t *testing.T, text string) settings {
	t.Helper()
	s := settings{prefix: topicPrefix(t), listen: freePort(t)}
	var cfg keys
	if err := yaml.Unmarshal([]byte(text), &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg == nil {
		cfg = keys{}
	}
	dir := t.TempDir()
	section := func(name string) map[string]any {
		m, ok := cfg[name].(map[string]any)
		if !ok {
			m = map[string]any{}
			cfg[name] = m
		}
		return m
	}
	kafka := section("kafka")
	delete(kafka, "tls")
	delete(kafka, "sasl")
	kafka["brokers"], kafka["replication"], kafka["partitions"] = brokers, 1, 2
	topics := section("topics")
	for _, name := range strings.Fields("logits labels panes snapshots calibrators alerts decisions finetune heads " +
		"calibrated deadletter checkpoints") {
		if v, said := topics[name]; said && v == "" {
			continue // there is none
		}
		topics[name] = s.topic(name)
	}
	list, _ := cfg["inputs"].([]any)
	for _, in := range list {
		in := in.(map[string]any)
		in["topic"] = s.topic(in["topic"].(string))
		if r, ok := in["request"].(map[string]any); ok && r["topic"] != nil {
			r["topic"] = s.topic(r["topic"].(string))
		}
	}
	if r, ok := cfg["schema_registry"].(map[string]any); ok {
		s.registry = newSchemaRegistry(t)
		r["url"] = s.registry.later
	}
	cfg["group"] = s.prefix
	section("checkpoints")["dir"] = filepath.Join(dir, "state")
	section("checkpoints")["interval"] = "300ms"
	section("http")["listen"] = s.listen
	if a, ok := cfg["archive"].(map[string]any); ok {
		a["directory"] = filepath.Join(dir, "archive")
	}
	if section("event_time")["idle_timeout"] == nil {
		section("event_time")["idle_timeout"] = "2s"
	}
	windows, _ := cfg["windows"].([]any)
	cfg["windows"] = append(windows, keys{"name": "all", "kind": "time", "size": "24h"})
	out, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.file = filepath.Join(dir, "plumbline.yaml")
	if err := os.WriteFile(s.file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// setUpSnapshot is the latest of the window with all rows; nil where there is none.
func setUpSnapshot(t *testing.T, s settings) *record.Snapshot {
	t.Helper()
	for _, snap := range latest(t, s) {
		if snap.Model == "digits" && snap.Slice == "" && snap.Window.Name == "all" {
			return &snap
		}
	}
	return nil
}

func setUpDone(t *testing.T, s settings) bool {
	snap := setUpSnapshot(t, s)
	return snap != nil && snap.Labelled == setupRows && snap.Predictions == setupRows
}

// compareRegions compares the cohorts, which requests alone have.
func compareRegions(t *testing.T, s settings) {
	t.Helper()
	for _, region := range []string{"north", "south"} {
		var want record.Metrics
		runJSON(t, &want, "eval", setupRowsFile(t, regionOf, region), "--json", "--bins", "15")
		found := false
		for _, snap := range latest(t, s) {
			if snap.Slice == "region="+region && snap.Window.Name == "all" {
				found = true
				compareMetrics(t, &snap.Raw, &want, want.N)
			}
		}
		if !found {
			t.Errorf("no snapshot of region=%s", region)
		}
	}
}

func compareSetUp(t *testing.T, s settings, want *record.Metrics) {
	t.Helper()
	compareMetrics(t, &setUpSnapshot(t, s).Raw, want, setupRows)
	if t.Failed() {
		t.Log(fmt.Sprint("configuration: ", s.file))
	}
}

func compareMetrics(t *testing.T, got, want *record.Metrics, rows int64) {
	t.Helper()
	if got.N != rows || want.N != rows || rows == 0 {
		t.Errorf("rows: got %d, eval %d, want %d", got.N, want.N, rows)
	}
	for name, m := range map[string][2]*float64{"accuracy": {got.Accuracy, want.Accuracy}, "ece": {got.ECE, want.ECE},
		"nll": {got.NLL, want.NLL}, "brier": {got.Brier, want.Brier}} {
		if m[0] == nil || m[1] == nil || math.Abs(*m[0]-*m[1]) > 1e-9 {
			t.Errorf("%s: got %s, eval %s", name, show(m[0]), show(m[1]))
		}
	}
}
