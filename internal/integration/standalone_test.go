//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/embedded/seglog"
)

// alone is a deployment that begins without Kafka.
type alone struct {
	t                         *testing.T
	dir, listen, broker, name string
	cmd                       *exec.Cmd
}

// newAlone has topics of its own names, because they end up on the broker of all tests.
func newAlone(t *testing.T) *alone {
	name := fmt.Sprintf("alone-%d", time.Now().UnixNano())
	a := &alone{t: t, dir: t.TempDir(), listen: freePort(t), broker: freePort(t), name: name}
	var topics strings.Builder
	for _, key := range []string{"logits", "labels", "panes", "snapshots", "calibrators", "alerts", "decisions",
		"finetune",
		"heads", "calibrated", "deadletter", "checkpoints"} {
		fmt.Fprintf(&topics, "  %s: %s.%s\n", key, name, key)
	}
	text := fmt.Sprintf("kafka:\n  brokers: [%q]\n  partitions: 2\ngroup: %s\ntopics:\n  keyed: true\n%scheckpoints:\n"+
		"  dir: %q\n  interval: 1s\nhttp:\n  listen: %q\n  ingest: true\n", a.broker, name, topics.String(),
		filepath.Join(a.dir, "state"), a.listen)
	if err := os.WriteFile(a.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.end(syscall.SIGKILL) })
	return a
}

func (a *alone) config() string { return filepath.Join(a.dir, "plumbline.yaml") }

// kafka is the address for a client.
func (a *alone) kafka() string {
	return "kafka://" + a.broker + "?logits=" + a.name + ".logits&labels=" + a.name + ".labels"
}

func (a *alone) start(args ...string) {
	a.cmd = exec.Command(binary, args...)
	a.cmd.Stdout, a.cmd.Stderr = a.t.Output(), a.t.Output()
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
}

func (a *alone) end(how syscall.Signal) {
	if a.cmd != nil {
		_ = a.cmd.Process.Signal(how)
		_ = a.cmd.Wait()
	}
	a.cmd = nil
}

// post sends rows until they are acknowledged.
func (a *alone) post(kind string, from, to int) {
	a.t.Helper()
	var b bytes.Buffer
	for i := from; i < to; i++ {
		if kind == "labels" {
			fmt.Fprintf(&b, `{"id":"row-%d","label":%d}`+"\n", i, i%2)
		} else {
			fmt.Fprintf(&b, `{"id":"row-%d","probs":[0.25,0.75]}`+"\n", i)
		}
	}
	var last string
	for range 200 {
		r, err := http.Post("http://"+a.listen+"/api/v1/ingest/m/"+kind, "application/x-ndjson",
			bytes.NewReader(b.Bytes()))
		if err == nil {
			text, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
			last = string(text)
		} else {
			last = err.Error()
		}
		time.Sleep(50 * time.Millisecond)
	}
	a.t.Fatalf("%s were not taken: %s", kind, last)
}

// await waits for so many predictions and joined rows.
func (a *alone) await(predictions, joined int64) {
	a.t.Helper()
	var s struct {
		Process struct {
			Counts struct{ Predictions, Joined, Labelled, Late int64 }
		}
	}
	for range 600 {
		r, err := http.Get("http://" + a.listen + "/api/v1/status")
		if err == nil {
			err = json.NewDecoder(r.Body).Decode(&s)
			_ = r.Body.Close()
		}
		c := s.Process.Counts
		if err == nil && c.Predictions >= predictions && c.Joined >= joined {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	c := s.Process.Counts
	if c.Predictions != predictions || c.Joined != joined || c.Labelled != joined || c.Late != 0 {
		a.t.Fatalf("%+v, want %d predictions and %d joined", c, predictions, joined)
	}
}

// TestMigration: a deployment without Kafka moves to a broker. Predictions that wait there for their label find it
// here, also those whose records the log has forgotten, and every count goes on.
func TestMigration(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	a.start("serve", "--embedded", a.dir)
	for i := range 20 {
		a.post("predictions", i*100, i*100+100)
	}
	a.post("labels", 0, 700)
	a.await(2000, 700)
	time.Sleep(1500 * time.Millisecond) // a checkpoint has it
	a.end(syscall.SIGTERM)
	logs, err := filepath.Glob(filepath.Join(a.dir, "broker", "log", "*.logits.*"))
	if err != nil || len(logs) != 2 {
		t.Fatalf("%v, %v", logs, err)
	}
	for _, dir := range logs { // as after a week
		l, err := seglog.Open(dir, seglog.Options{SegmentBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = l.Retain(seglog.Retention{Age: time.Hour}, time.Now().Add(2*time.Hour))
		}
		if lo, hi := l.Bounds(); err != nil || lo == 0 || lo != hi {
			t.Fatalf("%d to %d, %v", lo, hi, err)
		}
		_ = l.Close()
	}
	a.start("serve", "--embedded", a.dir)
	a.post("labels", 700, 900)
	a.post("predictions", 2000, 2100)
	a.await(2100, 900)
	a.end(syscall.SIGKILL)

	migrate := exec.Command(binary, "migrate", "--embedded", a.dir, "--to", "kafka://"+strings.Join(brokers, ","))
	out, err := migrate.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary, "serve", "--embedded", a.dir).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "were moved to") {
		t.Errorf("serve after the move: %v %s", err, out)
	}
	a.start("run", "-c", a.config())
	a.post("labels", 900, 2100)
	a.post("predictions", 2100, 2200)
	a.post("labels", 2100, 2200)
	a.await(2200, 2200)
	a.end(syscall.SIGTERM)
	out, err = exec.Command(binary, "doctor", "-c", a.config()).CombinedOutput()
	t.Logf("doctor: %v\n%s", err, out)
}
