package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/recipe"
	"github.com/plumbline/plumbline/trainer/service"
)

// trainerFiles writes rows whose features give the class away, and a configuration.
func trainerFiles(t *testing.T, brokers []string, dir string, change func(*config.Config)) (configFile string,
	cfg config.Config) {
	t.Helper()
	rows := filepath.Join(dir, "rows.arrow")
	if err := table.Write(rows, batchtest.Clouds(6000, 8, 3)); err != nil { // TestTrainerRowsOfRange counts on them
		t.Fatal(err)
	}
	cfg = config.Default()
	cfg.Kafka.Brokers, cfg.Kafka.Partitions = brokers, 2
	cfg.Trainer.Dir, cfg.Trainer.Files, cfg.Trainer.Backend, cfg.Trainer.Name = filepath.Join(dir, "trainer"),
		[]string{rows}, "go", "a"
	cfg.Trainer.Attempts, cfg.Trainer.Heartbeat, cfg.Trainer.LostAfter = 1000, 100*time.Millisecond, time.Second
	if change != nil {
		change(&cfg)
	}
	kafkatest.CreateTopics(t, brokers, 2, cfg.Topics.Finetune, cfg.Topics.Heads)
	text := fmt.Sprintf("kafka:\n  brokers: [%s]\n  partitions: 2\n"+
		"trainer:\n  dir: %s\n  files: [%s]\n  backend: go\n  name: a\n"+
		"  attempts: 1000\n  heartbeat: 100ms\n  lost_after: 1s\n",
		brokers[0], cfg.Trainer.Dir, rows)
	configFile = filepath.Join(dir, "plumbline.yaml")
	if err := os.WriteFile(configFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return configFile, cfg
}

// ask writes a request for a head to the finetune topic.
func ask(t *testing.T, brokers []string, cfg config.Config, n int, recipe string) record.Finetune {
	t.Helper()
	r := record.Finetune{Schema: 1, Model: "m", Version: "1", Number: n, ShadowVersion: fmt.Sprintf("1+head%d", n),
		Classes: 3, Recipe: recipe, Seed: 7,
		DecidedAt: moment("1970-01-01T02:00:00Z"), ShadowFrom: moment("1970-01-01T03:00:00Z"),
		Data: record.FinetuneData{From: moment("1970-01-01T00:00:00Z"), To: moment("1970-01-01T02:00:00Z")}}
	r.ID = r.Model + "/" + r.ShadowVersion
	writeRequest(t, brokers, cfg, r)
	return r
}

func writeRequest(t *testing.T, brokers []string, cfg config.Config, r record.Finetune) {
	t.Helper()
	value, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.Write(t, brokers, kafka.Message{Topic: cfg.Topics.Finetune, Partition: r.Number % 2, Key: []byte("m/1"),
		Value: value})
}

// headRecords are the records of a kind of the heads topic.
func headRecords[T any](t *testing.T, brokers []string, cfg config.Config, kind string) (out []T) {
	t.Helper()
	for _, m := range kafkatest.ReadAll(t, brokers, cfg.Topics.Heads) {
		var k struct{ Kind string }
		if len(m.Value) == 0 {
			continue
		}
		if err := json.Unmarshal(m.Value, &k); err != nil {
			t.Fatal(err)
		}
		if k.Kind != kind {
			continue
		}
		var v T
		if err := json.Unmarshal(m.Value, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// awaitResults polls until so many jobs have ended.
func awaitResults(t *testing.T, brokers []string, cfg config.Config, n int) []record.Head {
	t.Helper()
	return eventually.Get(t, fmt.Sprintf("%d results", n), func() ([]record.Head, bool) {
		out := headRecords[record.Head](t, brokers, cfg, record.HeadTrained)
		return out, len(out) >= n
	})
}

// TestTrainerKilled kills the process of a trainer at random moments, again and again. In the end there is one result,
// whole, with the same weights as those of a trainer that nobody disturbed; and no record between was more than a sign
// of life.
func TestTrainerKilled(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	brokers := kafkatest.Start(t)
	file, cfg := trainerFiles(t, brokers, dir, nil)
	want := undisturbed(t, cfg, ask(t, brokers, cfg, 1, recipe.Auto))

	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	kills := 0
	for ; len(headRecords[record.Head](t, brokers, cfg, record.HeadTrained)) == 0 && kills < 100; kills++ {
		cmd, log := process("trainer", "-c", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// longer each time: a busy machine too comes to an end
		time.Sleep(time.Duration(200+r.IntN(900+100*kills)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("the trainer ended by itself: %v\n%s", err, log)
		}
		_ = cmd.Wait()
	}
	results := headRecords[record.Head](t, brokers, cfg, record.HeadTrained)
	if len(results) != 1 {
		t.Fatalf("got %d results after %d kills, want 1", len(results), kills)
	}
	t.Logf("%d kills, %d attempts", kills, results[0].Attempt)
	if h := results[0]; h.Outcome != record.OutcomeTrained || !bytes.Equal(h.Weights, want.Weights) {
		t.Errorf("got %s: %s; want the weights of the undisturbed trainer", h.Outcome, h.Why)
	}
	if left, err := filepath.Glob(filepath.Join(cfg.Trainer.Dir, "jobs", "*", "result", "*")); err != nil ||
		len(left) != 3 {
		t.Errorf("the result directory has %v, %v; want three files", left, err)
	}
}

// undisturbed is the result of a request without a service around it.
func undisturbed(t *testing.T, cfg config.Config, r record.Finetune) record.Head {
	t.Helper()
	run, err := trainerd.NewRunner(trainerd.Loader{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	task := service.Task{Request: r, Attempt: 1, Dir: dir, Result: dir, Progress: func(string, float64, float64) {}}
	if err := run.Run(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(filepath.Join(dir, service.FileHead))
	if err != nil {
		t.Fatal(err)
	}
	return record.Head{Weights: weights}
}

// TestTrainerOnKafka: a trainer takes requests from the topic; heads lists what came of them, and a person's orders
// decide.
func TestTrainerOnKafka(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	dir := t.TempDir()
	file, cfg := trainerFiles(t, brokers, dir, nil)
	kafkatest.CreateTopics(t, brokers, 2, cfg.Topics.Decisions) // has a copy of each order
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- trainerd.Run(ctx, cfg, trainerd.Options{}, slog.New(slog.DiscardHandler)) }()
	first, second := ask(t, brokers, cfg, 1, "ce"), ask(t, brokers, cfg, 2, "nonsense")
	results := awaitResults(t, brokers, cfg, 2)
	i := slices.IndexFunc(results, func(h record.Head) bool { return h.ID == second.ID })
	if i < 0 || results[i].Outcome != record.OutcomeFailed || !strings.Contains(results[i].Why, `recipe "nonsense"`) {
		t.Errorf("got %+v, want a failure of the second that names the recipe", results)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("trainer: %v", err)
	}
	run := func(args ...string) (string, int) {
		var out, errs bytes.Buffer
		code := execute(t.Context(), append(args, "-c", file), &out, &errs)
		return out.String() + errs.String(), code
	}
	if text, code := run("heads", "list"); code != 0 || !strings.Contains(text, first.ID) ||
		!strings.Contains(text, "shadow") || !strings.Contains(text, "failed") {
		t.Errorf("heads list: exit code %d\n%s", code, text)
	}
	serves := func(want string) {
		t.Helper()
		text, _ := run("heads", "list", "--json")
		var v heads.View
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.Serve) != 1 || v.Serve[0].Serve != want {
			t.Errorf("got %v, %+v; want %s served", err, v.Serve, want)
		}
	}
	serves("1")
	for _, step := range []struct{ order, want string }{{"pin", "1+head1"}, {"rollback", "1"}, {"publish", "1+head1"},
		{"auto", "1"}} {
		if text, code := run("heads", step.order, first.ID, "--why", "a test", "--by", "ben"); code != 0 {
			t.Fatalf("heads %s: exit code %d: %s", step.order, code, text)
		}
		serves(step.want)
	}
	for _, args := range [][]string{{"heads", "pin", second.ID}, {"heads", "pin", "m/9"},
		{"trainer", "cancel", first.ID}} {
		if text, code := run(append(args, "--by", "eve", "--why", "no")...); code == 0 {
			t.Errorf("%v: got exit code 0: %s", args, text)
		}
	}
	refused := ""
	for _, m := range kafkatest.ReadAll(t, brokers, cfg.Topics.Decisions) {
		var d record.Decision
		var o record.Order
		if err := errors.Join(json.Unmarshal(m.Value, &d), json.Unmarshal(d.Record, &o)); err != nil {
			t.Fatal(err)
		}
		if o.Refused != "" {
			refused += o.Action + " of " + o.ID + " by " + o.By + ": " + o.Why + ": " + o.Refused + "\n"
		}
	}
	for _, want := range []string{"pin of " + second.ID + " by eve: no: " + second.ID + ": there is no trained head",
		"pin of m/9 by eve: no: m/9: there is no such head", "cancel of " + first.ID + " by eve: no: " + first.ID +
			": its job has ended"} {
		if !strings.Contains(refused, want) {
			t.Errorf("refused orders in the history: %swant %s", refused, want)
		}
	}
	for _, want := range []string{first.ID + ": shadow", "asked for at 1970-01-01T02:00:00Z", "trained by a, attempt 1",
		"validation rows:", "head.onnx: ", "auto by ben at ", "SHA-256 "} {
		if text, code := run("heads", "show", first.ID); code != 0 || !strings.Contains(text, want) {
			t.Errorf("heads show: exit code %d, no %q in %s", code, want, text)
		}
	}
	var shown heads.Head
	if text, _ := run("heads", "show", first.ID, "--json"); json.Unmarshal([]byte(text), &shown) != nil ||
		shown.ID != first.ID || shown.Order == nil || shown.Order.By != "ben" {
		t.Errorf("heads show --json: %+v", shown)
	}
	if text, code := run("heads", "show", "m/9"); code == 0 || !strings.Contains(text, "there is no such head") {
		t.Errorf("heads show of none: exit code %d: %s", code, text)
	}
	if text, code := run("heads", "export", first.ID, "-o", filepath.Join(dir, "exported")); code != 0 {
		t.Errorf("heads export: exit code %d: %s", code, text)
	}
	for _, name := range []string{service.FileHead, service.FileONNX} {
		if st, err := os.Stat(filepath.Join(dir, "exported", name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTrainerNameTaken: two trainers of one name and directory would take each other's jobs for their own.
func TestTrainerNameTaken(t *testing.T) {
	brokers := kafkatest.Start(t)
	_, cfg := trainerFiles(t, brokers, t.TempDir(), nil)
	unlock, err := trainerd.Lock(cfg.Trainer)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := trainerd.Run(t.Context(), cfg, trainerd.Options{}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "is held") {
		t.Errorf("got %v, want that the name is taken", err)
	}
}

// TestTrainerRowsOfRange: rows outside the request's range take no part, and the evidence says how many.
func TestTrainerRowsOfRange(t *testing.T) {
	brokers := kafkatest.Start(t)
	_, cfg := trainerFiles(t, brokers, t.TempDir(), nil)
	l := trainerd.Loader{Config: cfg, Log: slog.New(slog.DiscardHandler)}
	r := record.Finetune{Model: "m", Version: "1", Classes: 3,
		Data: record.FinetuneData{From: record.At(int64(1000 * time.Second)),
			To: record.At(int64(3000 * time.Second))}}
	rows, err := l.Load(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	used := rows.Used.(trainerd.Rows)
	if used.Rows != 2000 || used.Outside != 4000 || rows.Train.N() != 1600 || rows.Valid.N() != 400 {
		t.Errorf("got %+v, %d train, %d validate; want 2000 rows, 4000 outside, 1600 and 400", used, rows.Train.N(),
			rows.Valid.N())
	}
	r.Data.From, r.Data.To = record.At(int64(9000*time.Second)), record.At(int64(9001*time.Second))
	if _, err := l.Load(t.Context(), r); err == nil || !strings.Contains(err.Error(), "6000 are of other times") {
		t.Errorf("got %v, want that no row is of the range", err)
	}
}
