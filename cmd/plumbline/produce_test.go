package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/producer"
)

// TestServeTakesNoFlagForItsDirectory: where the directory was forgotten, none is made with the name of a flag.
func TestServeTakesNoFlagForItsDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, stderr := runCommand(t, "serve", "--embedded", "--help")
	const want = `--embedded "--help": must be a directory`
	if code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("got exit code %d, stderr %q, want %d and %q", code, stderr, exitUsage, want)
	}
}

func TestFeedFlags(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"--start", "yesterday", `--start "yesterday": must be a time`},
		{"--label-delay", "5m-0s", `--label-delay "5m-0s": must be MIN-MAX`},
		{"--label-delay", "5", `--label-delay "5": must be MIN-MAX`},
		{"--event-rate", "-1", "--event-rate -1: must be 0 to 1e9"},
		{"--batch", "0", "--batch 0: must be at least 1"},
		{"--repeat", "0", "--repeat 0: must be at least 1"},
		{"--rate", "-5", "--rate -5: must be 0 or more"},
		{"--limit", "x", "must be a whole number"},
	} {
		code, _, stderr := runCommand(t, "produce", "x.npz", c.flag+"="+c.value)
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s=%s: got exit code %d, stderr %q, want %d and %q", c.flag, c.value, code, stderr, exitUsage,
				c.want)
		}
	}
}

func TestProduceFiles(t *testing.T) {
	brokers := kafkatest.Start(t)
	file := brokerConfig(t, brokers, "")
	run(t, "topics", "create", "-c", file)
	first := writeFile(t, "monday.csv", "id,logits_0,logits_1,label\na,1,2,1\nb,2,1,0\nc,3,1,0\n")
	second := writeFile(t, "tuesday.csv", "id,logits_0,logits_1,label\nd,1,2,1\ne,2,1,\n")
	code, out, stderr := runCommand(t, "produce", first, second, "-c", file, "--json", "--start",
		"2026-01-02T03:04:05Z", "--event-rate", "1")
	var got producer.Summary
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, out, stderr)
	}
	if got.Rows != 5 || got.Labels != 4 || got.Partitions != 4 || got.FirstEvent != "2026-01-02T03:04:05Z" ||
		got.LastEvent != "2026-01-02T03:04:09Z" {
		t.Errorf("got %+v, want 5 rows and 4 labels on 4 partitions within 4 s", got)
	}
	models := map[string]int{}
	d := arrowio.NewDecoder(arrowio.Options{})
	for _, m := range kafkatest.ReadAll(t, brokers, "plumbline.logits") {
		if len(m.Value) == 0 {
			continue // the watermark at the end
		}
		batches, err := d.Decode(m.Value, arrowio.Origin{Time: m.Time.UnixNano()}, arrowio.Predictions)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			models[b.Models[0].Model] += b.N
		}
	}
	if models["monday"] != 3 || models["tuesday"] != 2 || len(models) != 2 {
		t.Errorf("got rows by model %v, want 3 of monday and 2 of tuesday", models)
	}
}

// TestProduceNamesTimesLeft: rows of files with times get others unless --event-rate says which they want.
func TestProduceNamesTimesLeft(t *testing.T) {
	file := brokerConfig(t, kafkatest.Start(t), "")
	run(t, "topics", "create", "-c", file)
	rows := writeFile(t, "rows.csv", "prob,label,at\n0.5,1,2026-01-31T00:00:00Z\n0.5,0,2026-01-31T01:00:00Z\n")
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"--ts", "at"}, true},
		{[]string{"--ts", "at", "--event-rate", "0"}, false},
		{[]string{"--ts", "at", "--event-rate", "100"}, false},
	} {
		code, _, stderr := runCommand(t, append([]string{"produce", rows, "-c", file}, c.args...)...)
		if got := strings.Contains(stderr, "times of their own"); code != exitDone || got != c.want {
			t.Errorf("%q: exit code %d, stderr %q; times named: %v, want %v", c.args, code, stderr, got, c.want)
		}
	}
}
