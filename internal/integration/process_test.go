//go:build integration

package integration

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runOK runs the binary to its end, which must be 0, and returns its standard output.
func runOK(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("plumbline %s: %v\n%s", strings.Join(args, " "), err, tail(stderr.Bytes()))
	}
	return out
}

// runJSON is runOK with the output decoded into v.
func runJSON(t *testing.T, v any, args ...string) {
	t.Helper()
	if out := runOK(t, args...); json.Unmarshal(out, v) != nil {
		t.Fatalf("plumbline %s: output is not one JSON object of the expected shape:\n%s", strings.Join(args, " "),
			tail(out))
	}
}

// process is a running `plumbline run`.
type process struct {
	t    *testing.T
	s    settings
	cmd  *exec.Cmd
	log  string
	done chan error
}

// run starts `plumbline run` and waits until it answers. It is killed when the test ends.
func run(t *testing.T, s settings) *process {
	t.Helper()
	p := &process{t: t, s: s, log: filepath.Join(t.TempDir(), "run.log"), done: make(chan error, 1)}
	f, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(cmp.Or(s.binary, binary), "run", "-c", s.file)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	err = p.cmd.Start()
	f.Close()
	if err != nil {
		t.Fatalf("plumbline run: %v", err)
	}
	go func() { p.done <- p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", s.prefix, p.tail())
		}
	})
	p.wait(30*time.Second, "answer on "+s.listen, func() bool { _, err := p.status(); return err == nil })
	return p
}

// kill is kill -9; a second one does nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop is SIGTERM, which must end the process with code 0.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("SIGTERM: %v\n%s", err, p.tail())
	}
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Fatalf("after SIGTERM: %v\n%s", err, p.tail())
		}
	case <-time.After(30 * time.Second):
		p.t.Fatalf("did not end within 30 s of SIGTERM\n%s", p.tail())
	}
}

// wait polls until ok; the process must stay alive meanwhile.
func (p *process) wait(limit time.Duration, what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-p.done:
			p.t.Fatalf("plumbline run ended (%v) while the test waited for it to %s\n%s", err, what, p.tail())
		default:
		}
		if time.Now().After(deadline) {
			st, err := p.status()
			p.t.Fatalf("did not %s within %v; status %+v, %v\n%s", what, limit, st, err, p.tail())
		}
	}
}

func (p *process) tail() []byte {
	b, _ := os.ReadFile(p.log)
	return tail(b)
}

func tail(b []byte) []byte {
	const most = 4000
	return b[max(0, len(b)-most):]
}

// status is /api/v1/status.
type status struct {
	StateHash string `json:"state_hash"`
	Drained   bool   `json:"drained"`
	Watermark string `json:"watermark"`
	Counts    counts `json:"counts"`
}

type counts struct {
	Predictions int64            `json:"predictions"`
	Labels      int64            `json:"labels"`
	Joined      int64            `json:"joined"`
	Labelled    int64            `json:"labelled"`
	Late        int64            `json:"late"`
	Expired     int64            `json:"expired"`
	Evicted     int64            `json:"evicted"`
	Duplicates  int64            `json:"duplicates"`
	Rejected    map[string]int64 `json:"rejected"`
	DeadLetters map[string]int64 `json:"dead_letters"`
	Repeats     map[string]int64 `json:"repeats"`
	Skipped     map[string]int64 `json:"dead_letters_skipped"`
	Refused     map[string]int64 `json:"dead_letters_refused"`
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

func (p *process) status() (status, error) {
	var answer struct {
		Process status `json:"process"`
	}
	err := p.get("/api/v1/status", &answer)
	return answer.Process, err
}

// drain waits until everything that was produced has been read and every pane of it evaluated.
func (p *process) drain(predictions, labels int64) status {
	p.t.Helper()
	var st status
	p.wait(3*time.Minute, fmt.Sprintf("drain %d predictions and %d labels", predictions, labels), func() bool {
		var err error
		st, err = p.status()
		return err == nil && st.Drained && st.Counts.Predictions >= predictions && st.Counts.Labels >= labels
	})
	return st
}

func (p *process) get(path string, v any) error {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + p.s.listen + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %.200s", path, resp.Status, body)
	}
	return json.Unmarshal(body, v)
}

func (p *process) mustGet(path string, v any) {
	p.t.Helper()
	if err := p.get(path, v); err != nil {
		p.t.Fatalf("%v\n%s", err, p.tail())
	}
}
