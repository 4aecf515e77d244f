//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStart follows docs/start.md to the letter in a fresh clone: the commands of its blocks, in one shell for each
// way, at the addresses that they name.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"8080", "9092"} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("port %s, which docs/start.md names, is taken", port)
		} else if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
	clone := filepath.Join(t.TempDir(), "plumbline")
	if out, err := exec.Command("git", "clone", "-q", filepath.Join("..", ".."), clone).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(clone, "docs", "start.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]string
	for i, part := range strings.Split(string(text), "```sh\n") {
		if block, _, ok := strings.Cut(part, "```"); ok && i > 0 {
			blocks = append(blocks, strings.Split(strings.TrimSpace(block), "\n"))
		}
	}
	if len(blocks) != 2 || len(blocks[0]) != 4 || len(blocks[1]) != 3 {
		t.Fatalf("commands of docs/start.md: %q", blocks)
	}
	follow(t, clone, blocks[0])
	forward(t, "127.0.0.1:9092", brokers[0])
	follow(t, clone, blocks[1])
}

// follow runs commands and looks for the diagram at the end.
func follow(t *testing.T, dir string, commands []string) {
	began := time.Now()
	var script strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&script, "%s\n", c)
		if strings.HasSuffix(c, "&") {
			script.WriteString("process=$!\nsleep 3\n") // a person takes longer
		}
	}
	script.WriteString("echo the commands are done; wait $process\n")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "bash", "-ec", script.String())
	sh.Dir = dir
	sh.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0") // the packages are compiled for other tests
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder
	sh.Stdout, sh.Stderr = &out, &out
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-sh.Process.Pid, syscall.SIGTERM)
		_ = sh.Wait()
		if t.Failed() {
			t.Logf("%s", tail([]byte(out.String())))
		}
	}()
	for ctx.Err() == nil {
		if accuracy, confidence, err := diagram(); err == nil {
			t.Logf("%d commands, %s to a diagram: accuracy %.2f, confidence %.2f", len(commands),
				time.Since(began).Round(time.Second), accuracy, confidence)
			if confidence < 0.95 || accuracy > 0.92 || accuracy < 0.7 {
				t.Errorf("docs/start.md says otherwise")
			}
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Error("no diagram")
}

// diagram is what the page draws, once it has some rows.
func diagram() (accuracy, confidence float64, err error) {
	r, err := http.Get("http://127.0.0.1:8080/api/v1/snapshots/latest?model=digits")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = r.Body.Close() }()
	var s struct {
		Labelled int64
		Raw      struct {
			Accuracy   float64 `json:"accuracy"`
			Confidence float64 `json:"mean_confidence"`
			Bins       []any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return 0, 0, err
	}
	if s.Labelled < 150 || len(s.Raw.Bins) == 0 {
		return 0, 0, errors.New("not yet")
	}
	return s.Raw.Accuracy, s.Raw.Confidence, nil
}

// forward lets an address lead to another.
func forward(t *testing.T, from, to string) {
	l, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				_ = a.Close()
				continue
			}
			go func() { _, _ = io.Copy(a, b); _ = a.Close() }()
			go func() { _, _ = io.Copy(b, a); _ = b.Close() }()
		}
	}()
}
