package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/internal/config"
)

// runCommand runs one command line as main would.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodesAndMessages(t *testing.T) {
	bad := writeFile(t, "bad.yaml", "stats: {bins: 7}\n")
	for _, c := range []struct {
		args   []string
		code   int
		stderr string // a part of it
	}{
		{[]string{"version"}, exitDone, ""},
		{[]string{"--help"}, exitDone, ""},
		{[]string{"topics", "create", "--help"}, exitDone, ""},
		{[]string{}, exitUsage, "a subcommand is needed"},
		{[]string{"config"}, exitUsage, "a subcommand is needed: check, example, init, schema"},
		{[]string{"verion"}, exitUsage, `unknown command "verion"; nearest is version`},
		{[]string{"zzzzzzzz"}, exitUsage, `unknown command "zzzzzzzz"; allowed are`},
		{[]string{"config", "chekc"}, exitUsage, `nearest is check`},
		{[]string{"version", "--nope"}, exitUsage, "--nope: unknown flag"},
		{[]string{"version", "--jsn"}, exitUsage, "--jsn: unknown flag; nearest is --json"},
		{[]string{"version", "-z"}, exitUsage, "-z: unknown flag"},
		{[]string{"version", "extra"}, exitUsage, `version: takes no argument; got ["extra"]`},
		{[]string{"heads", "show"}, exitUsage, "heads show: takes ID; got nothing"},
		{[]string{"eval"}, exitUsage, "eval: takes FILE[:array]...; got nothing"},
		{[]string{"eval", "--bins", "x", "f"}, exitUsage, `--bins "x": must be a whole number`},
		{[]string{"replay", "f.csv", "--log-format", "xml"}, exitUsage, `--log-format "xml": must be text or json`},
		{[]string{"demo", "--for", "1x"}, exitUsage, `--for "1x": must be a duration`},
		{[]string{"run", "--stages"}, exitUsage, "--stages: needs a value: stages"},
		{[]string{"history", "m", "--kind", "alert,bogus"}, exitUsage,
			`--kind "bogus": must be some of calibrator, alert, request, head, verdict, order, loss, skip`},
		{[]string{"state", "reset", "--why", "x", "--task", "bogus"}, exitUsage,
			`--task "bogus": no such task: must be shards/N, models/N, repartition-logits/N, repartition-labels/N, ` +
				`input-TOPIC/N or all`},
		{[]string{"state", "reset", "--why", "x", "--task", "shards/-1"}, exitUsage, `--task "shards/-1"`},
		{[]string{"train", "f.csv", "--recipe", "ce", "--from", "linear", "-o", "d", "--precision", "fp8"}, exitUsage,
			`--precision "fp8"`},
		{[]string{"train", "f.csv", "--recipe", "ce", "--from", "linear", "-o", "d", "--precision", "bf16"}, exitUsage,
			"of backend cuda, not of go"},
		{[]string{"train", "f.csv", "--recipe", "ce", "--rate", "-0.1"}, exitUsage,
			"--rate: lr -0.1, allowed 0..1000000"},
		{[]string{"train", "f.csv", "--recipe", "ce", "--width", "9"}, exitUsage,
			"--width 9: a setting of a bottleneck"},
		{[]string{"help", "verion"}, exitUsage, `unknown command "verion"; nearest is version`},
		{[]string{"help", "heads", "show"}, exitDone, ""},
		{[]string{"completion", "tcsh"}, exitUsage, `completion "tcsh": must be one of bash, zsh`},
		{[]string{"--version"}, exitDone, ""},
		{[]string{"config", "check"}, exitUsage, "a file is needed"},
		{[]string{"config", "check", bad}, exitUsage, "bad.yaml:1:9: stats.bins: 7: must divide 3600"},
		{[]string{"config", "check", bad + "x"}, exitUsage, "no such file"},
		{[]string{"topics", "create", "-c", bad}, exitUsage, "stats.bins: 7"},
	} {
		code, _, stderr := runCommand(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.stderr) {
			t.Errorf("plumbline %s: got exit code %d, stderr %q, want %d and %q in it", strings.Join(c.args, " "), code,
				stderr, c.code, c.stderr)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	code, out, _ := runCommand(t, "version", "--json")
	var v buildinfo.Info
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitDone || v.Version == "" || v.Go == "" {
		t.Errorf("got %q, %v, want a version", out, err)
	}
}

func TestConfigExampleChecks(t *testing.T) {
	code, example, _ := runCommand(t, "config", "example")
	if code != exitDone {
		t.Fatalf("config example: exit code %d", code)
	}
	path := writeFile(t, "plumbline.yaml", example)
	if code, out, stderr := runCommand(t, "config", "check", path); code != exitDone || out != path+": ok\n" {
		t.Errorf("got %d, %q, %q, want ok", code, out, stderr)
	}
	if code, out, stderr := runCommand(t, "config", "check", "-c", path); code != exitDone || out != path+": ok\n" {
		t.Errorf("-c: got %d, %q, %q, want ok", code, out, stderr)
	}
}

func TestConfigCheckJSON(t *testing.T) {
	good, bad := writeFile(t, "good.yaml", "group: g\n"), writeFile(t, "bad.yaml", "stats: {bins: 7}\nx: 1\n")
	code, out, _ := runCommand(t, "config", "check", "--json", good, bad)
	var got struct {
		Valid    bool
		Problems []configProblem
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if code != exitUsage || got.Valid || len(got.Problems) != 2 || got.Problems[0].Key != "stats.bins" ||
		got.Problems[1].Line != 2 {
		t.Errorf("got exit code %d, %+v, want 2 problems", code, got)
	}
}

func TestConfigSchemaIsJSON(t *testing.T) {
	if _, out, _ := runCommand(t, "config", "schema"); !json.Valid([]byte(out)) {
		t.Error("config schema: not JSON")
	}
}

// TestCompletions: each shell gets a script; bash is asked whether it can read its own.
func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, stderr := runCommand(t, "completion", shell)
		if code != exitDone || !strings.Contains(out, "plumbline") {
			t.Fatalf("%s: exit code %d, %s", shell, code, stderr)
		}
		if path, err := exec.LookPath(shell); err == nil && shell == "bash" {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(out)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("bash does not read it: %v, %s", err, said)
			}
		}
	}
	if _, out, _ := runCommand(t, "__complete", "heads", "sh"); !strings.Contains(out, "show\t") {
		t.Errorf("heads sh is completed as %q", out)
	}
}

// TestConfigInit asks the questions, those again whose answers are refused, takes flags, and does not replace a file.
func TestConfigInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.yaml")
	root := newRootCommand()
	var out, asked bytes.Buffer
	root.SetArgs([]string{"config", "init", "-o", path})
	root.SetIn(strings.NewReader("k1\nk1:9092, k2:9092\nann\nnever\ninline\n/var/lib/x\nhttp://am:9093\n"))
	root.SetOut(&out)
	root.SetErr(&asked)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Kafka.Brokers) != 2 || c.Kafka.SASL.Username != "ann" || !c.Kafka.TLS.Enabled || c.Topics.Labels != "" ||
		c.Checkpoints.Dir != "/var/lib/x" || c.Notify.Alertmanagers[0] != "http://am:9093" ||
		strings.Count(asked.String(), " [") != 7 || !strings.Contains(asked.String(), `"k1": must be host:port`) ||
		!strings.Contains(asked.String(), `"never": must be topic or inline`) {
		t.Errorf("got %+v after %q", c, asked.String())
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--brokers", "k:9092", "-o", path}, exitUsage, "is there already; --force"},
		{[]string{"--brokers", "k:9092", "-o", path, "--force"}, exitDone, "wrote "},
		{[]string{"--brokers", "k", "-o", "-"}, exitUsage, `kafka.brokers[0]: "k": must be host:port`},
		{[]string{"--labels", "x", "-o", "-"}, exitUsage, `--labels "x": must be topic or inline`},
		{[]string{"--labels", "topic", "-o", "-"}, exitDone, `brokers: ["127.0.0.1:9092"]`},
	} {
		code, out, stderr := runCommand(t, append([]string{"config", "init"}, c.args...)...)
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%q: got %d, %s, want %d and %q", c.args, code, out+stderr, c.code, c.says)
		}
	}
}

// TestCommandsAreSmall: the program is flags and printing; what it does is in packages.
func TestCommandsAreSmall(t *testing.T) {
	const most = 4000
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if lines < 1000 || lines > most {
		t.Errorf("cmd/plumbline has %d lines, the most is %d", lines, most)
	}
}
