//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	trainhead "github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/service"
)

// chaosRuns is how many faults TestTrainerChaos makes: one of each, or PLUMBLINE_CHAOS of them.
func chaosRuns(t *testing.T) int {
	text := os.Getenv("PLUMBLINE_CHAOS")
	if text == "" {
		return len(chaosFaults)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("PLUMBLINE_CHAOS=%s: %v", text, err)
	}
	return n
}

// chaos is a fault on its way.
type chaos struct {
	*trainerSetup
	r    *rand.Rand
	n    int // of the request, from 1
	name string
	log  bytes.Buffer // of all trainers that ended
}

// chaosFault does something to a request's trainers and returns the states that it may end in.
type chaosFault struct {
	name string
	run  func(c *chaos) (allowed []string)
}

var chaosFaults = []chaosFault{
	{"kill", (*chaos).kills},
	{"full disk", (*chaos).fillsDisk},
	{"damaged file", (*chaos).damages},
	{"zero head", (*chaos).zeroHead},
	{"cancel", (*chaos).cancels},
}

// with is the configuration of the round's trainer in a directory of its own.
func (c *chaos) with(dir, more string) string {
	file := c.config(c.name, "  backend: go\n"+more)
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	shared := fmt.Sprintf("dir: %q", filepath.Join(c.dir, "trainer"))
	text = bytes.Replace(text, []byte(shared), fmt.Appendf(nil, "dir: %q", dir), 1)
	text = bytes.Replace(text, []byte("attempts: 1000"), []byte("attempts: 3"), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

func (c *chaos) own() string { return filepath.Join(c.dir, c.name) }

// jobDir is the directory of the round's job.
func (c *chaos) jobDir() string {
	return filepath.Join(c.own(), "jobs", service.JobDir(fmt.Sprintf("m/1+head%d", c.n)))
}

// checkpoints are those of the round's job that are whole.
func (c *chaos) checkpoints() []string {
	found, _ := filepath.Glob(filepath.Join(c.jobDir(), "checkpoint-*"))
	return slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, ".tmp") })
}

// finish runs a trainer until the request has ended.
func (c *chaos) finish(file string) {
	p := c.start(file)
	eventually.True(c.t, c.name+": the request ends", func() bool { return c.state() != "" })
	c.end(p)
}

func (c *chaos) end(p *trainerProcess) {
	_ = p.Process.Kill()
	<-p.ended
	c.log.Write(p.log.Bytes())
}

// state is how the round's request has ended by the log: of a result and a cancellation the first counts. Empty: it has
// not.
func (c *chaos) state() string {
	id := fmt.Sprintf("m/1+head%d", c.n)
	for _, m := range kafkatest.ReadAll(c.t, brokers, c.prefix+".heads") {
		var h record.Head
		if len(m.Value) == 0 || json.Unmarshal(m.Value, &h) != nil || h.ID != id {
			continue
		}
		switch h.Kind {
		case record.HeadTrained:
			return h.Outcome
		case record.HeadCancel:
			return record.OutcomeCancelled
		}
	}
	return ""
}

func (c *chaos) sleep(least, most int) {
	time.Sleep(time.Duration(least+c.r.IntN(most-least)) * time.Millisecond)
}

// kills ends trainers with SIGKILL, more often than attempts are allowed.
func (c *chaos) kills() []string {
	c.ask(c.n, []string{"auto", "maccal"}[c.n%2])
	file := c.with(c.own(), "")
	for range 4 {
		p := c.start(file)
		c.sleep(300, 1500)
		c.end(p)
		if c.state() != "" {
			break
		}
	}
	c.finish(file)
	// Kills before anything was trained may use the attempts up.
	return []string{record.OutcomeTrained, record.OutcomeUnchanged, record.OutcomeFailed}
}

// fillsDisk gives the trainer a file system of a few pages, and more once that has held it up more often than attempts
// are allowed.
func (c *chaos) fillsDisk() []string {
	dir := c.own()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	size := fmt.Sprintf("size=%dk", 4*(2+c.r.IntN(4)))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", size, "tmpfs", dir).CombinedOutput(); err != nil {
		c.t.Logf("no full disk, nothing can be mounted here: %v: %s", err, out)
		return c.kills()
	}
	defer func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			c.t.Error(err)
		}
	}()
	c.ask(c.n, "auto")
	p := c.start(c.with(dir, ""))
	eventually.True(c.t, c.name+": the request is held", func() bool { return c.held() > 3 })
	if out, err := exec.Command("mount", "-o", "remount,size=256m", dir).CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	eventually.True(c.t, c.name+": the request ends", func() bool { return c.state() != "" })
	c.end(p)
	if !strings.Contains(c.log.String(), "no space left on device") {
		c.t.Errorf("%s: the log does not say that the disk is full:\n%s", c.name, tail(c.log.Bytes()))
	}
	return []string{record.OutcomeTrained, record.OutcomeUnchanged}
}

// held counts how often a trainer has said that something of its own kept it from the round's request.
func (c *chaos) held() (n int) {
	for _, m := range kafkatest.ReadAll(c.t, brokers, c.prefix+".heads") {
		var j record.Job
		if json.Unmarshal(m.Value, &j) == nil && j.ID == fmt.Sprintf("m/1+head%d", c.n) && j.State == "held" {
			n++
		}
	}
	return n
}

// damages kills a trainer once there is a checkpoint, and damages that.
func (c *chaos) damages() []string {
	c.ask(c.n, "auto")
	file := c.with(c.own(), "")
	p := c.start(file)
	var found []string
	eventually.True(c.t, c.name+": a checkpoint", func() bool {
		found = c.checkpoints()
		return len(found) > 0 || c.state() != ""
	})
	c.end(p)
	for _, name := range found { // nothing writes them any more
		text, err := os.ReadFile(name)
		if err != nil || len(text) == 0 {
			c.t.Fatalf("%s: %d bytes, %v", name, len(text), err)
		}
		text[c.r.IntN(len(text))] ^= 1 << c.r.IntN(8)
		if c.r.IntN(2) == 0 {
			text = text[:c.r.IntN(len(text))]
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	ended := c.state() != ""
	c.finish(file)
	if !ended && !strings.Contains(c.log.String(), "checkpoint cannot be used") {
		c.t.Errorf("%s: the log is without the damaged checkpoint:\n%s", c.name, tail(c.log.Bytes()))
	}
	return []string{record.OutcomeTrained, record.OutcomeUnchanged}
}

// zeroHead has a program that says it trained, and leaves a head of zeros.
func (c *chaos) zeroHead() []string {
	h, err := trainhead.Linear(make([]float32, 3*8), make([]float32, 3))
	if err != nil {
		c.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := artefact.WriteSafetensors(&b, h, nil); err != nil {
		c.t.Fatal(err)
	}
	zeros, program := filepath.Join(c.dir, "zeros.safetensors"), filepath.Join(c.dir, "zeros.sh")
	script := fmt.Sprintf(`#!/bin/sh
result=$(sed -n 's/.*"result": "\(.*\)",.*/\1/p' "$1")
cp %q "$result/head.safetensors"
echo '{"outcome": "trained", "why": "zeros"}' > "$result/report.json"
`, zeros)
	if err := os.WriteFile(zeros, b.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.ask(c.n, "auto")
	c.finish(c.with(c.own(), fmt.Sprintf("  command: [%q]\n", program)))
	return []string{record.OutcomeUnchanged, record.OutcomeFailed}
}

// cancels ends the request at some moment, mostly while it is trained, and wants the trainer free for the next one.
func (c *chaos) cancels() []string {
	r := c.ask(c.n, "auto")
	file := c.with(c.own(), "")
	p := c.start(file)
	if c.r.IntN(4) > 0 {
		eventually.True(c.t, c.name+": it trains", func() bool {
			return len(c.checkpoints()) > 0 || c.state() != ""
		})
	}
	c.sleep(0, 300)
	out, err := exec.Command(binary, "trainer", "cancel", r.ID, "--why", "chaos", "-c", file).CombinedOutput()
	eventually.True(c.t, c.name+": the request ends", func() bool { return c.state() != "" })
	if cancelled := c.state() == record.OutcomeCancelled; cancelled != (err == nil) && cancelled {
		c.t.Errorf("%s: cancelled, and refused: %v: %s", c.name, err, out)
	}
	// An attempt that went on would hold the trainer up.
	c.sleep(500, 501)
	began := time.Now()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	<-p.ended
	c.log.Write(p.log.Bytes())
	if took := time.Since(began); took > 5*time.Second || strings.Contains(c.log.String(), "the attempt goes on") {
		c.t.Errorf("%s: the trainer ended after %v:\n%s", c.name, took, tail(c.log.Bytes()))
	}
	return []string{record.OutcomeCancelled, record.OutcomeTrained, record.OutcomeUnchanged}
}

// TestTrainerChaos: trainers are killed, have no room on their disk, find damaged files, get heads of zeros, and are
// cancelled. Each request ends in exactly one way.
func TestTrainerChaos(t *testing.T) {
	t.Parallel()
	s := newTrainerSetup(t)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 3))
	runs := chaosRuns(t)
	ended := map[string]map[string]int{}
	for n := 1; n <= runs; n++ {
		f := chaosFaults[(n-1)%len(chaosFaults)]
		c := &chaos{trainerSetup: s, r: r, n: n, name: fmt.Sprintf("t%d", n)}
		began := time.Now()
		allowed := f.run(c)
		state := c.state()
		t.Logf("%s: %s in %v", f.name, state, time.Since(began).Round(time.Millisecond))
		if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+state+" ") {
			t.Errorf("seed %d: %s, run %d: ended as %q, want one of %v\n%s", seed, f.name, n, state, allowed,
				tail(c.log.Bytes()))
		}
		if ended[f.name] == nil {
			ended[f.name] = map[string]int{}
		}
		ended[f.name][state]++
	}
	once := map[string]int{}
	for _, h := range s.results() {
		if once[h.ID]++; once[h.ID] > 1 {
			t.Errorf("seed %d: %s has %d results", seed, h.ID, once[h.ID])
		}
	}
	t.Logf("seed %d, %d runs: %v", seed, runs, ended)
}
