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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/service"
)

// trainerSetup is a configuration of trainers with topics of their own, and the rows that they train on.
type trainerSetup struct {
	t      *testing.T
	dir    string
	prefix string
}

func newTrainerSetup(t *testing.T) *trainerSetup {
	t.Helper()
	s := &trainerSetup{t: t, dir: t.TempDir(), prefix: topicPrefix(t)}
	if err := table.Write(filepath.Join(s.dir, "rows.arrow"), batchtest.Clouds(4000, 8, 3)); err != nil {
		t.Fatal(err)
	}
	kafkatest.CreateTopics(t, brokers, 2, s.prefix+".finetune", s.prefix+".heads")
	eventually.True(t, "every partition has a leader", func() bool {
		return exec.Command(binary, "heads", "list", "-c", s.config("nobody", "")).Run() == nil
	})
	return s
}

// config writes the configuration of one trainer.
func (s *trainerSetup) config(name, more string) string {
	s.t.Helper()
	file := filepath.Join(s.dir, name+".yaml")
	text := fmt.Sprintf(`kafka: {brokers: [%q], replication: 1, partitions: 2}
topics: {finetune: %s.finetune, heads: %s.heads, decisions: ""}
trainer:
  name: %s
  dir: %q
  files: [%q]
  attempts: 1000
  heartbeat: 100ms
  lost_after: 1s
  keep: 1000
%s`,
		strings.Join(brokers, `", "`), s.prefix, s.prefix,
		name, filepath.Join(s.dir, "trainer"), filepath.Join(s.dir, "rows.arrow"), more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// ask writes a request.
func (s *trainerSetup) ask(n int, recipe string) record.Finetune {
	s.t.Helper()
	const hour = int64(time.Hour)
	r := record.Finetune{
		Schema:        1,
		Model:         "m",
		Version:       "1",
		Number:        n,
		ShadowVersion: fmt.Sprintf("1+head%d", n),
		Classes:       3,
		Recipe:        recipe,
		Seed:          7,
		DecidedAt:     record.At(2 * hour),
		ShadowFrom:    record.At(3 * hour),
		Data:          record.FinetuneData{From: record.At(0), To: record.At(2 * hour)},
	}
	r.ID = r.Model + "/" + r.ShadowVersion
	value, err := json.Marshal(r)
	if err != nil {
		s.t.Fatal(err)
	}
	kafkatest.Write(s.t, brokers, kafka.Message{Topic: s.prefix + ".finetune", Partition: n % 2, Key: []byte("m/1"),
		Value: value})
	return r
}

// results are all results in the log.
func (s *trainerSetup) results() (out []record.Head) {
	s.t.Helper()
	for _, m := range kafkatest.ReadAll(s.t, brokers, s.prefix+".heads") {
		var h record.Head
		if len(m.Value) == 0 {
			continue
		}
		if err := json.Unmarshal(m.Value, &h); err != nil {
			s.t.Fatal(err)
		}
		if h.Kind == record.HeadTrained {
			out = append(out, h)
		}
	}
	return out
}

// ended is how many requests have a result; a broker that has no time for an answer is asked again.
func (s *trainerSetup) ended() (n int) {
	s.t.Helper()
	var v struct {
		Heads []struct{ Result *record.Head }
	}
	eventually.True(s.t, "heads list answers", func() bool {
		out, err := exec.Command(binary, "heads", "list", "--json", "-c", s.config("nobody", "")).Output()
		return err == nil && json.Unmarshal(out, &v) == nil
	})
	for _, h := range v.Heads {
		if h.Result != nil {
			n++
		}
	}
	return n
}

// trainerProcess is a running `plumbline trainer`.
type trainerProcess struct {
	*exec.Cmd
	log   bytes.Buffer
	ended chan struct{}
	err   error // after that
}

func (s *trainerSetup) start(file string) *trainerProcess {
	s.t.Helper()
	p := &trainerProcess{Cmd: exec.Command(binary, "trainer", "-c", file), ended: make(chan struct{})}
	p.Stderr = &p.log
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { p.err = p.Wait(); close(p.ended) }()
	s.t.Cleanup(func() { _ = p.Process.Kill(); <-p.ended })
	return p
}

// kill is kill -9; the trainer must have been running until then.
func (p *trainerProcess) kill(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatalf("the trainer ended by itself: %v\n%s", p.err, tail(p.log.Bytes()))
	default:
	}
	_ = p.Process.Kill()
	<-p.ended
}

const trainerKills = 30

// linkedBackends are those of the CPU; gorgonia with the build tag of that name.
func linkedBackends() []string {
	if backends.Check(backends.Gorgonia) != nil {
		return []string{backends.Go}
	}
	return []string{backends.Go, backends.Gorgonia}
}

// TestTrainerKilled kills a trainer with SIGKILL at random moments, at least thirty times, on each CPU backend. In the
// log is then one result of every request, whole, with the weights that its file has.
func TestTrainerKilled(t *testing.T) {
	t.Parallel()
	for _, backend := range linkedBackends() {
		t.Run(backend, func(t *testing.T) {
			s := newTrainerSetup(t)
			file := s.config("a", "  backend: "+backend+"\n")
			seed := uint64(time.Now().UnixNano())
			r := rand.New(rand.NewPCG(seed, 1))
			asked, killed := 0, 0
			for ended := 0; killed < trainerKills || ended < asked; ended = s.ended() {
				if ended == asked {
					asked++
					s.ask(asked, []string{"auto", "ce", "maccal"}[asked%3])
				}
				p := s.start(file)
				time.Sleep(time.Duration(50+r.IntN(1200+40*killed)) * time.Millisecond)
				p.kill(t)
				killed++
				if killed > 10*trainerKills {
					t.Fatalf("seed %d: %d kills, %d of %d requests have results", seed, killed, ended, asked)
				}
			}
			t.Logf("seed %d: %d kills, %d requests", seed, killed, asked)
			seen := map[string]int{}
			for _, h := range s.results() {
				seen[h.ID]++
				if h.Outcome != record.OutcomeTrained || seen[h.ID] > 1 {
					t.Errorf("%s: result %d is %s: %s", h.ID, seen[h.ID], h.Outcome, h.Why)
				}
				own := h
				own.Weights = nil
				fromFile, err := service.Weights(own) // checks the hash
				if err != nil {
					t.Fatal(err)
				}
				inRecord, err := service.Weights(h)
				if err != nil || fmt.Sprint(fromFile.Layers[0].W) != fmt.Sprint(inRecord.Layers[0].W) {
					t.Errorf("%s: the record and its file differ, %v", h.ID, err)
				}
				dir := filepath.Join(s.dir, "trainer", "jobs", service.JobDir(h.ID))
				left, _ := filepath.Glob(filepath.Join(dir, "*.tmp"))
				whole, _ := filepath.Glob(filepath.Join(dir, "result", "*"))
				if len(left) > 0 || len(whole) != 3 {
					t.Errorf("%s: left %v, result %v", h.ID, left, whole)
				}
			}
		})
	}
}

// groupScript is a program that starts others: one in the background, one in a pipeline that does not listen to
// SIGTERM. It notes the numbers of all in the file PIDS, and does its work in STEPS steps, of which it knows after a
// restart which are done.
const groupScript = `#!/bin/sh
export PIDS="%s" STEPS=%d
job="$1"
work=$(sed -n 's/.*"work": "\(.*\)".*/\1/p' "$job")
result=$(sed -n 's/.*"result": "\(.*\)",.*/\1/p' "$job")
echo $$ >> "$PIDS"
sleep 1000 &
echo $! >> "$PIDS"
sh -c 'echo $$ >> "$PIDS"; sleep 1001 & echo $! >> "$PIDS"; wait' | cat > /dev/null &
n=$(cat "$work/done" 2>/dev/null || echo 0)
while [ "$n" -lt $STEPS ]; do
  sleep 0.1
  n=$((n + 1))
  echo "$n" > "$work/done.new" && mv "$work/done.new" "$work/done"
  echo "{\"progress\": 0.$((n * 8)), \"step\": \"step $n\"}"
done
echo '{"outcome": "unchanged", "why": "done"}' > "$result/report.json"
`

// groupProgram writes groupScript and names the file with the numbers of its processes.
func (s *trainerSetup) groupProgram(steps int) (script, pids string) {
	s.t.Helper()
	script, pids = filepath.Join(s.dir, "program.sh"), filepath.Join(s.dir, "pids")
	if err := os.WriteFile(script, fmt.Appendf(nil, groupScript, pids, steps), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return script, pids
}

// alive are the processes whose numbers a file has and that run.
func alive(t *testing.T, file string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil &&
			!bytes.Contains(stat, []byte(") Z ")) {
			out = append(out, line+" "+string(stat[:min(len(stat), 60)]))
		}
	}
	return out
}

// TestExternalTrainerKilled: a trainer that is killed leaves nothing of its program running, whatever the program has
// started, and the program goes on where it was. The guard itself may be killed too.
func TestExternalTrainerKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc: processes cannot be looked at")
	}
	s := newTrainerSetup(t)
	script, pids := s.groupProgram(12)
	file := s.config("a", fmt.Sprintf("  command: [%q]\n", script))
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	asked, killed, ran := 0, 0, 0
	for ended := 0; killed < trainerKills || ended < asked; ended = s.ended() {
		if ended == asked {
			asked++
			s.ask(asked, "auto")
		}
		p := s.start(file)
		time.Sleep(time.Duration(100+r.IntN(1500)) * time.Millisecond)
		if len(alive(t, pids)) > 0 {
			ran++
		}
		p.kill(t)
		killed++
		eventually.True(t, "the program and all that it has started end",
			func() bool { return len(alive(t, pids)) == 0 })
		if killed > 10*trainerKills {
			t.Fatalf("%d kills, %d of %d requests have results", killed, ended, asked)
		}
	}
	t.Logf("%d kills, %d of them of a program that ran, %d requests", killed, ran, asked)
	if ran < trainerKills/4 {
		t.Errorf("the program ran at %d of %d kills: nothing is shown", ran, killed)
	}
	for _, h := range s.results() {
		if h.Outcome != record.OutcomeUnchanged {
			t.Errorf("%s is %s: %s", h.ID, h.Outcome, h.Why)
		}
	}
}

// TestTrainersTakeOver: two trainers share requests; one that is killed is found lost, and the other goes on with its
// job; a cancelled program ends with all that it has started; the queue goes on.
func TestTrainersTakeOver(t *testing.T) {
	t.Parallel()
	s := newTrainerSetup(t)
	script, pids := s.groupProgram(100_000)
	command := fmt.Sprintf("  command: [%q]\n", script)
	first := s.ask(1, "auto")
	a := s.start(s.config("a", command))
	eventually.True(t, "a runs its program", func() bool { return len(alive(t, pids)) > 0 })
	b := s.start(s.config("b", command))
	held := func() string {
		var v struct {
			Heads []struct {
				ID, State string
				Job       *record.Job
			}
		}
		runJSON(t, &v, "heads", "list", "--json", "-c", filepath.Join(s.dir, "b.yaml"))
		for _, h := range v.Heads {
			if h.ID == first.ID && h.Job != nil {
				return h.State + " " + h.Job.Trainer + " " + strconv.Itoa(h.Job.Attempt)
			}
		}
		return ""
	}
	if got := held(); got != "running a 1" {
		t.Errorf("got %q, want the first attempt with a", got)
	}
	a.kill(t)
	eventually.True(t, "b takes the job over", func() bool { return held() == "running b 2" })
	eventually.True(t, "b runs the program", func() bool { return len(alive(t, pids)) > 0 })
	runOK(t, "trainer", "cancel", first.ID, "--why", "a test", "-c", filepath.Join(s.dir, "b.yaml"))
	eventually.True(t, "the cancelled program ends", func() bool { return len(alive(t, pids)) == 0 })
	s.ask(2, "auto")
	eventually.True(t, "b goes on with the queue", func() bool { return len(alive(t, pids)) > 0 })
	if err := b.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if <-b.ended; b.err != nil {
		t.Errorf("b, told to stop: %v\n%s", b.err, tail(b.log.Bytes()))
	}
	if left := alive(t, pids); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	for _, h := range s.results() {
		t.Errorf("%s has a result, %s: %s", h.ID, h.Outcome, h.Why)
	}
}
