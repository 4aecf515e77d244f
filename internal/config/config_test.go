package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEveryKeyHasADescriptionAndEveryDescriptionAKey(t *testing.T) {
	known := map[string]bool{}
	for _, k := range keys() {
		known[k.pattern] = true
		if fields[k.pattern].doc == "" {
			t.Errorf("key %s has no entry in the table of fields", k.pattern)
		}
	}
	for pattern := range fields {
		if !known[pattern] {
			t.Errorf("entry %s of the table of fields is no key", pattern)
		}
	}
}

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestExampleParsesToDefault(t *testing.T) {
	got, err := Parse(Example(), "example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	// The example writes empty lists out, which is the same as none.
	want.Models, want.Slices.Columns, want.Stats.ExtraBins = []Model{}, []string{}, []int{}
	want.Notify.Alertmanagers, want.Notify.Labels, want.Notify.Webhooks = []string{}, []string{}, []Webhook{}
	want.Trainer.Files, want.Trainer.Heads, want.Trainer.Command = []string{}, []TrainerHead{}, []string{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, k := range keys() {
		last := k.pattern[strings.LastIndexByte(k.pattern, '.')+1:]
		itemsOfNone := strings.HasPrefix(k.pattern, "windows[]") || strings.HasPrefix(k.pattern, "models[]") || strings.HasPrefix(k.pattern, "notify.webhooks[]") ||
			strings.HasPrefix(k.pattern, "trainer.heads[]")
		if !strings.HasSuffix(last, "[]") && !itemsOfNone && !strings.Contains(string(Example()), last+":") {
			t.Errorf("the example lacks %s", k.pattern)
		}
	}
}

func TestAbsentKeysKeepTheirDefaults(t *testing.T) {
	got, err := Parse([]byte("group: g\nstats:\n  bins: 10\njoin:\nrules:\n- {name: strict, fire: 0.04}\nwindows:\n- {name: w, kind: time, size: 1m}\n"), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Group, want.Stats.Bins = "g", 10
	want.Rules = []Rule{defaultRule("strict")}
	want.Rules[0].Fire = 0.04
	want.Windows = []Window{{Name: "w", Kind: KindTime, Size: time.Minute, Slide: time.Minute}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestAnchorsAndMergesAreFollowed(t *testing.T) {
	got, err := Parse([]byte("rules:\n- &base {name: a, fire: 0.2, clear: 0.1}\n- <<: *base\n  name: b\n"), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Rules[1]; r.Name != "b" || r.Fire != 0.2 || r.Clear != 0.1 {
		t.Errorf("got %+v, want b with fire 0.2 and clear 0.1", r)
	}
}

// TestProblems gives a file and the whole message about it.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"unknown key", "kafka:\n  brokres: [a:1]\n", "c.yaml:2:3: kafka.brokres: unknown key; nearest is brokers"},
		{"key of another section", "bins: 10\n", "c.yaml:1:1: bins: unknown key; it belongs at stats.bins"},
		{"key like none", "join:\n  zzzzzz: 1\n", "c.yaml:2:3: join.zzzzzz: unknown key; allowed are wait, max_rows, memory_bytes, dir, remember"},
		{"unknown key in a list", "windows:\n- name: a\n  kind: rows\n  rows: 5\n  evry: 5\n", "c.yaml:5:3: windows[0].evry: unknown key; nearest is every"},
		{"text for a number", "kafka:\n  replication: two\n", "c.yaml:2:3: kafka.replication: two: must be a whole number"},
		{"fraction for a whole number", "stats: {bins: 1.5}\n", "c.yaml:1:9: stats.bins: 1.5: must be a whole number"},
		{"huge number", "stats: {bins: 99999999999999999999}\n", "c.yaml:1:9: stats.bins: 99999999999999999999: must be a whole number"},
		{"number for text", "group: 7\n", `c.yaml:1:1: group: 7: must be text; write "7" in quotes`},
		{"text for a switch", "refit: {on_alarm: yes}\n", "c.yaml:1:9: refit.on_alarm: yes: must be true or false"},
		{"duration without unit", "event_time: {pane: 10}\n", "c.yaml:1:14: event_time.pane: 10: must be a duration with units, such as 500ms, 10s, 5m or 1h30m"},
		{"duration in days", "event_time: {pane: 1d}\n", "c.yaml:1:14: event_time.pane: 1d: must be a duration with units, such as 500ms, 10s, 5m or 1h30m"},
		{"no value", "group:\n", "c.yaml:1:1: group: no value: must be text; in quotes where it has a colon"},
		{"list for a section", "stats: [1]\n", "c.yaml:1:1: stats: a list: must be a mapping with the keys bins, extra_bins, soft_bins, soft_temperature, cdf_nu, resamples"},
		{"text for a list", "windows: day\n", "c.yaml:1:1: windows: day: must be a list; [] for none, leave the key out for the default"},
		{"range", "refit:\n  test_share: 0.95\n", "c.yaml:2:3: refit.test_share: 0.95: must be 0.05 to 0.9"},
		{"negative duration", "join: {wait: -1s}\n", "c.yaml:1:8: join.wait: -1s: must be 0s to 8784h"},
		{"not a number", "stats: {cdf_nu: .nan}\n", "c.yaml:1:9: stats.cdf_nu: .nan: must be a number"},
		{"zero where positive", "stats: {cdf_nu: 0}\n", "c.yaml:1:9: stats.cdf_nu: 0: must be above 0 and at most 10"},
		{"choice", "calibrated: {columns: all}\n", `c.yaml:1:14: calibrated.columns: "all": must be one of probs, top1`},
		{"no brokers", "kafka: {brokers: []}\n", "c.yaml:1:9: kafka.brokers: []: must have an item"},
		{"broker without port", "kafka: {brokers: ['a:1', b]}\n", `c.yaml:1:26: kafka.brokers[1]: "b": must be host:port, such as 127.0.0.1:9092`},
		{"fetch below message", "kafka: {fetch_max_bytes: 4096}\n", "c.yaml:1:9: kafka.fetch_max_bytes: 4096: must be at least kafka.message_max_bytes, 8388608"},
		{"topic name", "topics: {panes: a b}\n", `c.yaml:1:10: topics.panes: "a b": must match ^[a-zA-Z0-9._-]{1,249}$ and not be . or ..`},
		{"topic twice", "topics: {panes: x, alerts: x}\n", `c.yaml:1:20: topics.alerts: "x": must differ from topics.panes`},
		{"unkeyed topic twice", "topics: {logits_unkeyed: plumbline.logits}\n", `c.yaml:1:10: topics.logits_unkeyed: "plumbline.logits": must differ from topics.logits`},
		{"unkeyed labels of none", "topics: {labels: '', labels_unkeyed: x}\n", `c.yaml:1:22: topics.labels_unkeyed: "x": has no effect while topics.labels is empty`},
		{"shutdown timeout", "shutdown_timeout: 10ms\n", `c.yaml:1:1: shutdown_timeout: 10ms: must be 1s to 8784h`},
		{"topic needed", "calibrated: {enabled: true}\ntopics: {calibrated: ''}\n", `c.yaml:2:10: topics.calibrated: "": must not be empty while calibrated.enabled is true`},
		{"one class", "models: [{name: m, classes: 1}]\n", "c.yaml:1:20: models[0].classes: 1: must be 0 (learnt) or 2 to 1000000"},
		{"model twice", "models: [{name: m}, {name: m}]\n", `c.yaml:1:22: models[1].name: "m": is that of models[0]; each must be there once`},
		{"reserved column", "slices: {columns: [ts]}\n", `c.yaml:1:20: slices.columns[0]: "ts": is a column of the schema, not a cohort`},
		{"bins", "stats: {bins: 7}\n", "c.yaml:1:9: stats.bins: 7: must divide 3600, such as 10, 12, 15, 18, 20, 24, 25, 30"},
		{"extra bins twice", "stats: {extra_bins: [15]}\n", "c.yaml:1:22: stats.extra_bins[0]: 15: is there already, here or as stats.bins"},
		{"window size", "windows: [{name: a, kind: time, size: 25s}]\n", "c.yaml:1:33: windows[0].size: 25s: must be a multiple of event_time.pane, 10s"},
		{"window without size", "windows: [{name: a, kind: time}]\n", "c.yaml:1:12: windows[0].size: 0s: must be a multiple of event_time.pane, 10s"},
		{"window slide", "windows: [{name: a, kind: time, size: 1m, slide: 40s}]\n", "c.yaml:1:43: windows[0].slide: 40s: must divide size, 1m, and be a multiple of event_time.pane, 10s"},
		{"rows window with size", "windows: [{name: a, kind: rows, rows: 5, size: 1m}]\n", "c.yaml:1:21: windows[0].kind: rows: takes rows and every; size and slide are for kind time"},
		{"clear above fire", "rules: [{name: a, fire: 0.01}]\n", "c.yaml:1:10: rules[0].clear: 0.03: must be less than fire, 0.01"},
		{"clear below fire", "rules: [{name: a, kind: threshold, measure: accuracy, side: below, fire: 0.8, clear: 0.7}]\n",
			"c.yaml:1:79: rules[0].clear: 0.7: must be more than fire, 0.8, with side below"},
		{"bound of a share", "rules: [{name: a, kind: threshold, measure: ece, fire: 1.5}]\n",
			"c.yaml:1:50: rules[0].fire: 1.5: must be at most 1: only measure nll of kind threshold goes higher"},
		{"distance of classes in order", "rules: [{name: a, kind: distance, score: class, measure: ks}]\n",
			"c.yaml:1:49: rules[0].measure: ks: score class takes psi, js: classes have no order"},
		{"label shift without classes", "unlabelled: {classes: none}\nrefit: {label_shift: candidate}\n",
			"c.yaml:2:9: refit.label_shift: candidate: needs unlabelled.enabled and unlabelled.classes"},
		{"measure of another kind", "rules: [{name: a, measure: coverage}]\n", "c.yaml:1:19: rules[0].measure: coverage: kind excess takes ece"},
		{"side of another kind", "rules: [{name: a, interval: true}]\n", "c.yaml:1:10: rules[0].kind: excess: side, interval and age are for kind threshold"},
		{"age of another measure", "rules: [{name: a, kind: threshold, age: 1h}]\n", "c.yaml:1:36: rules[0].age: 1h: is for measure coverage"},
		{"refit rows", "sample: {rows: 100}\n", "c.yaml:1:10: sample.rows: 100: must be at least refit.max_rows, 5000"},
		{"refit period", "refit: {period: 1s}\n", "c.yaml:1:9: refit.period: 1s: must be 0 (never) or at least event_time.pane, 10s"},
		{"password nowhere", "kafka: {sasl: {username: u}}\n", `c.yaml:1:16: kafka.sasl.username: "u": needs a password: set kafka.sasl.password_env or kafka.sasl.password_file`},
		{"password in the file", "kafka: {sasl: {password: hunter2}}\n", "c.yaml:1:16: kafka.sasl.password: unknown key; allowed are mechanism, username, password_env, password_file"},
		{"key twice", "group: a\ngroup: b\n", `c.yaml:2:1: not YAML: mapping key "group" already defined at [1:1]`},
		{"webhook's address", "notify: {alertmanagers: ['a:9093']}\n", `c.yaml:1:26: notify.alertmanagers[0]: "a:9093": must match ^https?://[^\s]+$`},
		{"address with a query", "notify: {external_url: 'https://x/?a=1'}\n", `c.yaml:1:10: notify.external_url: "https://x/?a=1": must have neither ? nor #: paths and queries are added to it`},
		{"label of the alert", "notify: {labels: [a=1, model=x]}\n", `c.yaml:1:24: notify.labels[1]: "model=x": must not be one of the alert's own labels, alertname, severity, model, version, slice: alerts of different models would be one`},
		{"label twice", "notify: {labels: [a=1, a=2]}\n", `c.yaml:1:24: notify.labels[1]: "a=2": must have a name that is there once`},
		{"two documents", "group: a\n---\ngroup: b\n", "c.yaml:3:1: a second document: a configuration is one YAML document"},
		{"alias of nothing", "join: *x\n", "c.yaml:1:1: join: *x: no anchor &x before it"},
		{"anchor that holds itself", "join: &x\n  <<: *x\n", "c.yaml:1:1: join: *x: no anchor &x before it"},
		{"two problems", "stats: {bins: 7}\nrefit: {alpha: 0.6}\n", "c.yaml:1:9: stats.bins: 7: must divide 3600, such as 10, 12, 15, 18, 20, 24, 25, 30\nc.yaml:2:9: refit.alpha: 0.6: must be above 0 and at most 0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.yaml), "c.yaml")
			if err == nil {
				t.Fatalf("no error, want %s", c.want)
			}
			if got := err.Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			var ps Problems
			if !errors.As(err, &ps) {
				t.Errorf("error is a %T, want Problems", err)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want not exist", err)
	}
	got, err := Load("")
	if err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("got %+v, %v, want the defaults", got, err)
	}
}

func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLUMBLINE_TEST_PASSWORD", "from env")
	for _, c := range []struct {
		sasl SASL
		want string
		ok   bool
	}{
		{SASL{}, "", true},
		{SASL{Username: "u", PasswordEnv: "PLUMBLINE_TEST_PASSWORD"}, "from env", true},
		{SASL{Username: "u", PasswordFile: file}, "from file", true},
		{SASL{Username: "u", PasswordEnv: "PLUMBLINE_TEST_UNSET"}, "", false},
		{SASL{Username: "u", PasswordFile: file + "x"}, "", false},
		{SASL{Username: "u"}, "", false},
	} {
		if got, err := c.sasl.Password(); got != c.want || (err == nil) != c.ok {
			t.Errorf("%+v: got %q, %v, want %q, ok %v", c.sasl, got, err, c.want, c.ok)
		}
	}
}

func TestSchemaHasEveryKey(t *testing.T) {
	type node struct {
		Properties           map[string]node
		Items                *node
		AdditionalProperties *bool
		Description          string
	}
	var root node
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys() {
		at := root
		for _, part := range strings.Split(k.pattern, ".") {
			name, list := strings.CutSuffix(part, "[]")
			at = at.Properties[name]
			if list && at.Items != nil {
				at = *at.Items
			}
		}
		if at.Description == "" {
			t.Errorf("the schema does not describe %s", k.pattern)
		}
		if k.t.Kind() == reflect.Struct && (at.AdditionalProperties == nil || *at.AdditionalProperties) {
			t.Errorf("the schema takes unknown keys in %s", k.pattern)
		}
	}
}

func TestExampleFilesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../examples/config/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example configurations: %v", err)
	}
	for _, f := range files {
		if _, err := Load(f); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Example())
	f.Add([]byte("rules:\n- &base {name: a}\n- <<: *base\n  name: b\n"))
	f.Add([]byte("join: &x\n  <<: *x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, "f.yaml")
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("parsed, but not valid: %v", err)
		}
	})
}
