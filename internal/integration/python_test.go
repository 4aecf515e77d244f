//go:build integration

package integration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPythonProducer: the example producer in Python, with pyarrow's encoder and a Python Kafka client, sends rows that
// all join; nothing is rejected.
func TestPythonProducer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "examples", "producer", "python")
	python := pythonWith(t, "-r", filepath.Join(dir, "requirements.txt"))
	s := configure(t, oneDay)
	p := run(t, s)
	const rows = 2000
	cmd := exec.Command(python, filepath.Join(dir, "producer.py"), "--brokers", strings.Join(brokers, ","), "--rows",
		"2000",
		"--logits", s.topic("logits"), "--labels", s.topic("labels"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("producer.py: %v\n%s", err, tail(out))
	}
	st := p.drain(rows, rows)
	if st.Counts.Joined != rows || st.Counts.Labelled != rows || sum(st.Counts.Rejected) != 0 ||
		sum(st.Counts.DeadLetters) != 0 {
		t.Errorf("counts after %d rows of a Python producer: %+v", rows, st.Counts)
	}
}

// pythonWith returns the interpreter of a fresh virtual environment with what pip is asked for.
func pythonWith(t *testing.T, packages ...string) string {
	t.Helper()
	system, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on the PATH")
	}
	env := filepath.Join(t.TempDir(), "venv")
	python := filepath.Join(env, "bin", "python")
	install := append([]string{python, "-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...)
	for _, args := range [][]string{{system, "-m", "venv", env}, install} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, tail(out))
		}
	}
	return python
}
