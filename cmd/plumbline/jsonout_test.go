package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestReadingCommandsSpeakJSON walks the tree of commands. Every one that reads prints one JSON value with --json, here
// or in the test that is named; the others are listed with the reason. A new command must be put into one of them.
func TestReadingCommandsSpeakJSON(t *testing.T) {
	t.Parallel()
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"models": [], "decisions": [], "entries": []}`)
	}))
	t.Cleanup(process.Close)
	file, _ := deploy(t, "kafka: {brokers: ['"+kafkatest.Start(t)[0]+"'], replication: 1, partitions: 1}\n")
	rows := writeFile(t, "four.csv", fourRows)
	reads := map[string][]string{
		"plan":             {"--rows-per-second", "100", "--classes", "10"},
		"config check":     {file},
		"config schema":    {},
		"trainer list":     {"-c", file},
		"health":           {"--url", process.URL},
		"doctor":           {"-c", file},
		"deadletters":      {"-c", file},
		"models list":      {"--url", process.URL},
		"calibrators list": {"m", "--url", process.URL},
		"history":          {"m", "--url", process.URL},
		"heads list":       {"-c", file},
		"eval":             {rows},
		"test rules":       {filepath.Join("..", "..", "examples", "rules-test.yaml")},
		"version":          {},
	}
	shownBy := map[string]string{
		"heads show":         "TestTrainerOnKafka",
		"inspect checkpoint": "TestInspect",
		"inspect pane":       "TestInspect",
		"replay":             "TestRunAndReplay",
		"fit":                "TestFitApplyEval",
	}
	does := map[string]string{
		"config example": "prints a file, which is YAML", "config docs": "prints a file, which is Markdown",
		"completion": "prints a script", "help": "prints text",
	}
	for _, name := range []string{"demo", "config init", "topics create", "produce", "run", "serve", "migrate",
		"trainer", "trainer cancel", "trainer guard", "pause", "resume", "scale", "state reset", "backup", "restore",
		"models set-classes", "calibrators pin", "calibrators unpin", "calibrators rollback", "calibrators publish",
		"heads pin", "heads rollback", "heads auto", "heads export", "apply", "convert", "train"} {
		does[name] = "changes or writes something"
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "plumbline ")
		args, known := reads[name]
		switch {
		case cmd.HasSubCommands() || does[name] != "":
		case known:
			speaksJSON(t, append(append(strings.Fields(name), args...), "--json"))
		case shownBy[name] == "" || !hasTest(t, shownBy[name]):
			t.Errorf("plumbline %s: no test shows that it prints JSON with --json", name)
		}
	}
	walk(newRootCommand())
}

func speaksJSON(t *testing.T, args []string) {
	t.Helper()
	_, out, errs := runCommand(t, args...)
	d := json.NewDecoder(strings.NewReader(out))
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("plumbline %s: %v in %.300q, %s", strings.Join(args, " "), err, out, errs)
		return
	}
	if err := d.Decode(&v); err != io.EOF {
		t.Errorf("plumbline %s: there is more than one value: %v", strings.Join(args, " "), v)
	}
}

// hasTest reports whether a test of this package has the name.
func hasTest(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
