package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
)

// hostileName clears the screen, sets the title, begins a line of its own, turns the direction of text and hides.
const hostileName = "m\x1b[2J\x1b]0;title\a\nok    all is well\r\x7f\u009b31m\u202egnp.\u2066\u200b"

// plain reports what in an output could command a terminal.
func plain(text string) (bad []rune) {
	for _, r := range text {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			bad = append(bad, r)
		}
	}
	return bad
}

// hostileServer answers every request with records whose names and reasons are hostile.
func hostileServer(t *testing.T) *httptest.Server {
	const h = hostileName
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		switch {
		case strings.HasSuffix(r.URL.Path, "/history"):
			v = map[string]any{"entries": []any{map[string]any{"version": h, "slice": h, "kind": h, "state": h,
				"summary": h, "by": h, "why": h}}}
		case strings.HasSuffix(r.URL.Path, "/calibrators"):
			v = map[string]any{"calibrators": []any{record.Calibrator{Model: h, Version: h, Reason: h, Outcome: h,
				By: h, Why: h, Build: h, Evidence: record.Evidence{FitDigest: h, FitRows: 1}}}}
		case strings.HasSuffix(r.URL.Path, "/models"):
			v = map[string]any{"models": []any{map[string]any{"model": h, "versions": []any{map[string]any{"version": h,
				"classes": 3}}}}}
		case strings.HasSuffix(r.URL.Path, "/pause"):
			v = map[string]any{"paused": map[string]any{"by": h, "why": h, "settled": true, "since": time.Now()}}
		default:
			w.WriteHeader(http.StatusConflict)
			v = map[string]any{"error": h}
		}
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// hostileHeads is a configuration whose topics have a request for a head with hostile names.
func hostileHeads(t *testing.T) (file string) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "plumbline.finetune", "plumbline.heads")
	value, err := json.Marshal(record.Finetune{Schema: 1, ID: hostileName + "/2", Model: hostileName, Version: "1",
		Number: 1, ShadowVersion: "2", Classes: 3, Reason: hostileName, Recipe: "linear", DecidedAt: record.At(2),
		ShadowFrom: record.At(3), Data: record.FinetuneData{From: record.At(0), To: record.At(2)}})
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.Write(t, brokers, kafka.Message{Topic: "plumbline.finetune", Key: []byte("m"), Value: value})
	return brokerConfig(t, brokers, "")
}

// TestHostileNames gives every command that prints what others name such names, as text and as JSON.
func TestHostileNames(t *testing.T) {
	s := hostileServer(t)
	url := "--url=" + s.URL
	csv := writeFile(t, "rows.csv", "probs_0,probs_1,label,region\n"+
		strings.Repeat("0.3,0.7,1,\"x\x1b[2J\u202egnp\u009b\"\n0.3,0.7,0,eu\n", 40))
	rules := writeFile(t, "rules.yaml", `
configuration: {refit: {method: none}, rules: [{name: quiet, fire: .9}]}
tests:
- name: "t\e[2J\n\u202Egnp"
  rows: [{count: 300}]
  expect: [{rule: quiet, state: resolved}]
`)
	heads := hostileHeads(t)
	for name, c := range map[string]struct {
		args []string
		want string // part of the output
	}{
		"history":          {[]string{"history", "m", url}, `\u001b[2J`},
		"calibrators list": {[]string{"calibrators", "list", "m", url}, `\u001b[2J`},
		"models list":      {[]string{"models", "list", url}, `\u001b[2J`},
		"order": {[]string{"calibrators", "unpin", "m", "--model-version", "1", "--why", "x", url},
			`\u001b[2J`},
		"pause":      {[]string{"pause", "--why", "x", url}, `\u001b[2J`},
		"eval by":    {[]string{"eval", csv, "--by", "region"}, `\u001b[2J`},
		"eval file":  {[]string{"eval", "no\x1b[2J\u202e.csv"}, `\u001b[2J`},
		"test rules": {[]string{"test", "rules", rules}, `\u001b[2J`},
		"replay":     {[]string{"replay", csv, "--model", "m\x1b[2J\u202e"}, ""},
		"heads list": {[]string{"heads", "list", "-c", heads}, `\u001b[2J`},
		"heads show": {[]string{"heads", "show", hostileName + "/2", "-c", heads}, ""},
		"config":     {[]string{"config", "check", writeFile(t, "c.yaml", "\"a\\e[2J\\u202E\": 1\n")}, ""},
	} {
		for _, format := range []string{"", "--json"} {
			args := c.args
			if format != "" {
				args = append(args[:len(args):len(args)], format)
			}
			_, out, errs := runCommand(t, args...)
			if bad := plain(out + errs); len(bad) > 0 {
				t.Errorf("%s %s: the output has %q:\n%q", name, format, bad, out+errs)
			}
			if format == "" && (!strings.Contains(out+errs, c.want) || strings.Contains(out, "\nok    all is well")) {
				t.Errorf("%s: %q", name, out+errs)
			}
		}
	}
}
