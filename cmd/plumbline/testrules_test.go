package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/ruletest"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestRulesExample runs the shipped cases.
func TestRulesExample(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	code, out, errOut := runCommand(t, "test", "rules", "../../examples/rules-test.yaml")
	if code != 0 || strings.Count(out, "ok    ") != 10 {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
}

// TestRulesThatFail: what was expected and what came instead, and exit code 1.
func TestRulesThatFail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.yaml")
	text := `
configuration: {refit: {method: none}, rules: [{name: quiet, fire: .9}], alarm: {signals: [raw]}}
tests:
- name: too late
  rows: [{count: 3000, sharpness: 2.5}]
  expect: [{rule: calibration-raw, from: 4m, to: 5m}]
- name: never
  rows: [{count: 3000, sharpness: 2.5}]
  expect: [{rule: calibration-raw, never: true}]
- name: another rule
  rows: [{count: 300}]
  expect: [{rule: quiet, state: resolved}]
- name: not complete
  rows: [{count: 3000, sharpness: 2.5}]
  expect: [{rule: quiet, never: true}]
  complete: true
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runCommand(t, "test", "rules", path)
	for _, want := range []string{"FAIL  too late (" + path +
		":4)\n      - calibration-raw firing, 4m0s to 5m0s (line 6)\n      + calibration-raw firing, ",
		"FAIL  never (" + path +
			":7)\n      - never calibration-raw firing, 0s to the end (line 9)\n      + calibration-raw firing, ",
		"FAIL  another rule (" + path +
			":10)\n      - quiet resolved, 0s to the end (line 12)\n      + nothing of rule quiet, slice \"\"",
		"FAIL  not complete (" + path + ":13)\n      + calibration-raw firing, ", ", not expected"} {
		if !strings.Contains(out, want) {
			t.Errorf("output\n%swant %q in it", out, want)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	code, out, _ = runCommand(t, "test", "rules", "--json", path)
	var results []ruletest.Result
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != 1 || len(results) != 4 || results[0].OK ||
		len(results[0].Alerts) != 1 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

// TestRulesRefuses: files that cannot be run are wrong usage, and the message names the key.
func TestRulesRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "t.yaml:1: tests: none"},
		{"tests: []", "tests: none"},
		{"test: []", "unknown field \"test\""},
		{"tests:\n- name: a\n  expect:\n  - {rule: r, from: 5}", "t.yaml:4: from: 5: must be a duration with units"},
		{"tests:\n- name: a\n  rate: fast", "t.yaml:3: rate: fast: must be a number"},
		{"tests: [{rows: []}]", "tests[0] \"\": name: must not be empty"},
		{"tests: [{name: a}]", "exactly one of rows, panes and file"},
		{"tests: [{name: a, rows: [{count: 5}]}]", "expect: none"},
		{"tests: [{name: a, rows: [{count: 0}], expect: [{rule: r}]}]", "rows[0]: count: 0"},
		{"tests: [{name: a, rows: [{count: 5, confidence: .9}], expect: [{rule: r}]}]", "both or neither"},
		{"tests: [{name: a, rows: [{count: 5}], delay: soon, expect: [{rule: r}]}]", "delay: \"soon\""},
		{"tests: [{name: a, rows: [{count: 5}], expect: [{rule: r, state: on}]}]", "expect[0]: state: \"on\""},
		{"tests: [{name: a, rows: [{count: 5}], expect: [{state: firing}]}]", "expect[0]: rule"},
		{
			"tests:\n- name: a\n  rows:\n  - {count: 5}\n  - {count: 5, unlabelled: 2}\n  expect: [{rule: r}]",
			"t.yaml:5: tests[0] \"a\": rows[1]: unlabelled: 2",
		},
		{"tests: [{name: a, rows: [{count: 5, delay: 5s-1s}], expect: [{rule: r}]}]", "rows[0]: delay: \"5s-1s\""},
		{
			"tests:\n- name: a\n  rows: [{count: 5}]\n  expect:\n  - {rule: r}\n" +
				"  - {rule: r, bins: [{lo: .5, hi: .4}]}\n",
			"t.yaml:6: tests[0] \"a\": expect[1]: bins[0]: lo: 0.5",
		},
		{
			"tests: [{name: a, rows: [{count: 5}], expect: [{rule: r, state: inhibited, inhibited: false}]}]",
			"inhibited: false",
		},
		{
			"tests: [{name: a, rows: [{count: 5}], panes: [{count: 1}], expect: [{rule: r}]}]",
			"exactly one of rows, panes and file",
		},
		{
			"tests: [{name: a, rate: 5, panes: [{count: 1}], expect: [{rule: r}]}]",
			"rate: must not be there beside panes",
		},
		{
			"tests: [{name: a, delay: 1s, panes: [{count: 1}], expect: [{rule: r}]}]",
			"delay: must not be there beside panes",
		},
		{"tests: [{name: a, panes: [{count: -1}], expect: [{rule: r}]}]", "panes[0]: count: -1"},
		{
			"tests: [{name: a, panes: [{bins: [{confidence: .2, rows: 1}]}], expect: [{rule: r}]}]",
			"panes[0]: bins[0]: confidence: 0.2: must be above 1/classes, 0.25",
		},
		{
			"tests: [{name: a, panes: [{bins: [{confidence: .9, rows: 5, correct: 6}]}], expect: [{rule: r}]}]",
			"bins[0]: correct: 6: must be 0 to rows, 5",
		},
		{
			"tests: [{name: a, panes: [{count: 10000, bins: [{confidence: .9, rows: 5000}]}], expect: [{rule: r}]}]",
			"10000 panes of 5000 rows",
		},
		{
			"tests: [{name: a, panes: [{bins: [{confidence: .9, rows: 0}]}], expect: [{rule: r}]}]",
			"rows: 0: must be 1 to",
		},
		{
			"tests: [{name: a, rows: [{count: 5}], expect: [{rule: calibration-rawl, never: true}]}]",
			`expect[0]: rule: "calibration-rawl": must be one of the configuration's:` +
				` calibration-raw, calibration-calibrated, accuracy-fall, excess-ece`,
		},
		{
			"tests: [{name: a, rows: [{count: 5}], expect: [{rule: excess-ece, slice: eu, never: true}]}]",
			`slice: "eu": must be COLUMN=VALUE`,
		},
		{
			"tests: [{name: a, rows: [{count: 5}], expect: [{rule: excess-ece, slice: region=eu, never: true}]}]",
			`slice column "region": must be of slices.columns`,
		},
		{
			"tests: [{name: a, rows: [{count: 5, slices: {region: [eu]}}], expect: [{rule: excess-ece}]}]",
			`rows[0]: slice column "region"`,
		},
		{
			"tests: [{name: a, rows: [{count: 5, only: {region: eu}}], expect: [{rule: excess-ece}]}]",
			`rows[0]: slice column "region"`,
		},
		{
			"tests: [{name: a, panes: [{slices: {region: eu}}], expect: [{rule: excess-ece}]}]",
			`panes[0]: slice column "region"`,
		},
		{
			"config: a.yaml\nconfiguration: {}\ntests: [{name: a, rows: [{count: 5}], expect: [{rule: r}]}]",
			"t.yaml:2: only one of config, configuration",
		},
		{"config: none.yaml\ntests: [{name: a, rows: [{count: 5}], expect: [{rule: r}]}]", "none.yaml: no such file"},
		{"configuration: {alarm: {fdr: 2}}\ntests: [{name: a, rows: [{count: 5}], expect: [{rule: r}]}]", "alarm.fdr"},
		{
			"configuration: {rules: [{name: a, kind: distance}]}\n" +
				"tests: [{name: a, rows: [{count: 5}], expect: [{rule: r}]}]",
			"kind distance takes ks",
		},
	} {
		path := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, out := runCommand(t, "test", "rules", path)
		if code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, %q; want %q in it", c.text, code, out, c.want)
		}
	}
}

// TestRulesOfPanes: panes reach the rules with the sums that they were given, at the times of panes, and with a
// configuration of the command line.
func TestRulesOfPanes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// 7s does not divide the start of the day: the first pane begins at the next multiple.
	cfg := write("c.yaml", `
event_time: {pane: 7s}
windows: [{name: w, kind: rows, rows: 100}]
alarm: {enabled: false}
refit: {method: none}
slices: {columns: [region]}
rules:
- {name: low, kind: threshold, measure: accuracy, side: below, signal: raw, rows: 100, min_rows: 100, warmup_rows: 0,
   fire: 0.7, clear: 0.75, for: 0s, clear_for: 0s, slices: true}
- {name: sure, kind: threshold, measure: confidence, signal: raw, rows: 100, min_rows: 100, warmup_rows: 0,
   fire: 0.8049, clear: 0.1, for: 0s}
`)
	cases := write("t.yaml", `
tests:
- name: exactly 69 of 100 are right from the fourth pane on
  panes:
  - {count: 3, bins: [{confidence: 0.95, rows: 70, correct: 61}, {confidence: 0.45, rows: 30, correct: 9}],
     slices: {region: eu}}
  - {bins: [{confidence: 0.95, rows: 71, correct: 60}, {confidence: 0.45, rows: 29, correct: 9}], slices: {region: eu}}
  - {count: 2, bins: [{confidence: 0.95, rows: 70, correct: 70}, {confidence: 0.45, rows: 30, correct: 10}],
     slices: {region: us}}
  expect:
  - {rule: low, from: 28s, to: 28s}
  - {rule: low, state: resolved, from: 35s, to: 35s}
  - {rule: low, slice: region=eu, from: 28s, to: 28s, inhibited: true}
  - {rule: low, slice: region=us, never: true}
  - {rule: sure, from: 28s, to: 28s} # 71 rows of .95 and 29 of .45: .805
`)
	code, out, errOut := runCommand(t, "test", "rules", "-c", cfg, cases)
	if code != exitDone || !strings.Contains(out, "ok    exactly") {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
	rows := write("rows.csv", "logits_0,logits_1,label\n"+strings.Repeat("0,2,1\n", 50))
	for _, file := range []string{"rows.csv", rows} { // beside the cases, or absolute
		code, out, errOut = runCommand(t, "test", "rules",
			write("file.yaml", "config: "+cfg+"\n"+
				"tests: [{name: a, file: "+file+", expect: [{rule: low, never: true}]}]"))
		if code != exitDone {
			t.Errorf("rows of %s: exit code %d:\n%s%s", file, code, out, errOut)
		}
	}
	code, _, errOut = runCommand(t, "test", "rules", "-c", cfg,
		write("own.yaml", "configuration: {}\ntests: [{name: a, rows: [{count: 5}], expect: [{rule: excess-ece}]}]"))
	if code != exitUsage || !strings.Contains(errOut, "only one of config, configuration and the flag --config") {
		t.Errorf("a file with a configuration beside -c: exit code %d, %s", code, errOut)
	}
}
