package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/output"
)

// TestRulesExample runs the shipped cases.
func TestRulesExample(t *testing.T) {
	t.Parallel()
	code, out, errOut := runCommand(t, "test", "rules", "../../examples/rules-test.yaml")
	if code != 0 || strings.Count(out, "ok    ") != 9 {
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
	for _, want := range []string{"FAIL  too late (" + path + ":4)\n      - calibration-raw firing, 4m0s to 5m0s (line 6)\n      + calibration-raw firing, ",
		"FAIL  never (" + path + ":7)\n      - never calibration-raw firing, 0s to the end (line 9)\n      + calibration-raw firing, ",
		"FAIL  another rule (" + path + ":10)\n      - nobody resolved, 0s to the end (line 12)\n      + nothing of rule nobody, slice \"\"",
		"FAIL  not complete (" + path + ":13)\n      + calibration-raw firing, ", ", not expected"} {
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
		"tests: [{rows: []}]":                    "tests[0] \"\": name: must not be empty",
		"tests: [{name: a}]":                     "exactly one of rows and file",
		"tests: [{name: a, rows: [{count: 5}]}]": "expect: none",
		"tests: [{name: a, rows: [{count: 0}], expect: [{rule: r}]}]":                                                      "rows[0]: count: 0",
		"tests: [{name: a, rows: [{count: 5, confidence: .9}], expect: [{rule: r}]}]":                                      "both or neither",
		"tests: [{name: a, rows: [{count: 5}], delay: soon, expect: [{rule: r}]}]":                                         "delay: \"soon\"",
		"tests: [{name: a, rows: [{count: 5}], expect: [{rule: r, state: on}]}]":                                           "expect[0]: state: \"on\"",
		"tests: [{name: a, rows: [{count: 5}], expect: [{state: firing}]}]":                                                "expect[0]: rule",
		"tests:\n- name: a\n  rows:\n  - {count: 5}\n  - {count: 5, unlabelled: 2}\n  expect: [{rule: r}]":                 "t.yaml:5: tests[0] \"a\": rows[1]: unlabelled: 2",
		"tests: [{name: a, rows: [{count: 5, delay: 5s-1s}], expect: [{rule: r}]}]":                                        "rows[0]: delay: \"5s-1s\"",
		"tests:\n- name: a\n  rows: [{count: 5}]\n  expect:\n  - {rule: r}\n  - {rule: r, bins: [{lo: .5, hi: .4}]}\n":     "t.yaml:6: tests[0] \"a\": expect[1]: bins[0]: lo: 0.5",
		"tests: [{name: a, rows: [{count: 5}], expect: [{rule: r, state: inhibited, inhibited: false}]}]":                  "inhibited: false",
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

// TestExpectationsOfEvidence: what is expected of state, inhibitor and bins is compared with what the alert says.
func TestExpectationsOfEvidence(t *testing.T) {
	t.Parallel()
	a := &ruleAlert{Rule: "r", State: "firing", InhibitedBy: "m/1//calibration-raw", Direction: "overconfident",
		Bins: []output.EvidenceBin{{Lo: .8, Hi: .8667, Gap: -.1}, {Lo: .8667, Hi: .9333, Gap: -.2}}}
	yes, no := true, false
	for _, c := range []struct {
		e    ruleExpectation
		want bool
	}{
		{ruleExpectation{State: "firing"}, true},
		{ruleExpectation{State: "inhibited"}, true},
		{ruleExpectation{State: "pending"}, false},
		{ruleExpectation{State: "firing", Inhibited: &no}, false},
		{ruleExpectation{State: "firing", Inhibited: &yes, InhibitedBy: "calibration-raw"}, true},
		{ruleExpectation{State: "firing", InhibitedBy: "m/1//calibration-raw"}, true},
		{ruleExpectation{State: "firing", InhibitedBy: "raw"}, false},
		{ruleExpectation{State: "firing", Direction: "underconfident"}, false},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, 1, "below"}}, OnlyBins: true}, true},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, .87, ""}}}, true},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, .87, ""}}, OnlyBins: true}, false},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.8, 1, "above"}}}, false},
		{ruleExpectation{State: "firing", Bins: []expectedBins{{.2, .4, ""}}}, false},
	} {
		if c.e.Rule = "r"; c.e.matches(a) != c.want {
			t.Errorf("%v: matches %v: %v, want %v", &c.e, a, !c.want, c.want)
		}
	}
}
