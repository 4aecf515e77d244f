package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRulesExample runs the shipped cases.
func TestRulesExample(t *testing.T) {
	t.Parallel()
	code, out, errOut := runCommand(t, "test", "rules", "../../examples/rules-test.yaml")
	if code != 0 || strings.Count(out, "ok    ") != 5 {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
}

// TestRulesThatFail: what was expected and what came instead, and exit code 1.
func TestRulesThatFail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.yaml")
	text := `
configuration: {refit: {method: none}, rules: [], alarm: {signals: [raw]}}
tests:
- name: too late
  rows: [{count: 3000, sharpness: 2.5}]
  expect: [{rule: calibration-raw, from: 4m, to: 5m}]
- name: never
  rows: [{count: 3000, sharpness: 2.5}]
  expect: [{rule: calibration-raw, never: true}]
- name: another rule
  rows: [{count: 300}]
  expect: [{rule: nobody, state: resolved}]
- name: not complete
  rows: [{count: 3000, sharpness: 2.5}]
  expect: [{rule: nobody, never: true}]
  complete: true
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runCommand(t, "test", "rules", path)
	for _, want := range []string{"FAIL  too late\n      - calibration-raw firing, 4m0s to 5m0s\n      + calibration-raw firing, ", "FAIL  never\n      - never calibration-raw firing, 0s to the end\n      + calibration-raw firing, ",
		"FAIL  another rule\n      - nobody resolved, 0s to the end\n      + nothing of rule nobody, slice \"\"", "FAIL  not complete\n      + calibration-raw firing, ", ", not expected"} {
		if !strings.Contains(out, want) {
			t.Errorf("output\n%swant %q in it", out, want)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	code, out, _ = runCommand(t, "test", "rules", "--json", path)
	var results []ruleResult
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != 1 || len(results) != 4 || results[0].OK || len(results[0].Alerts) != 1 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

// TestRulesRefuses: files that cannot be run are wrong usage, and the message names the key.
func TestRulesRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tests: []":                              "tests: none",
		"test: []":                               "unknown field \"test\"",
		"tests: [{rows: []}]":                    "tests[0].name",
		"tests: [{name: a}]":                     "exactly one of rows and file",
		"tests: [{name: a, rows: [{count: 5}]}]": "expect: none",
		"tests: [{name: a, rows: [{count: 0}], expect: [{rule: r}]}]":                                                      "rows[0]: count: 0",
		"tests: [{name: a, rows: [{count: 5, confidence: .9}], expect: [{rule: r}]}]":                                      "both or neither",
		"tests: [{name: a, rows: [{count: 5}], delay: soon, expect: [{rule: r}]}]":                                         "delay: \"soon\"",
		"tests: [{name: a, rows: [{count: 5}], expect: [{rule: r, state: on}]}]":                                           "expect[0]",
		"configuration: {alarm: {fdr: 2}}\ntests: [{name: a, rows: [{count: 5}], expect: [{rule: r}]}]":                    "alarm.fdr",
		"configuration: {rules: [{name: a, kind: distance}]}\ntests: [{name: a, rows: [{count: 5}], expect: [{rule: r}]}]": "kind distance takes ks",
	} {
		path := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, out := runCommand(t, "test", "rules", path)
		if code == 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %q; want %q in it", text, code, out, want)
		}
	}
}
