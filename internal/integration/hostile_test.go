//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/segmentio/kafka-go"
)

// hostile holds the scenarios of TestHostile; each file of scenarios adds its own in init. What names one is
// "topic-what", as dead-letters-many.
var hostile = map[string]func(t *testing.T, r *attack){}

// attack is the line of a scenario in the table "Under attack".
type attack struct {
	Input   string // what the producer or the fault does
	Before  string // what it did to a deployment before it was mended
	Lag     string // of the good model
	Exact   bool   // the good model's numbers are those of its rows alone
	RSS     int64  // the most bytes of the process
	Restart int    // restarts of tasks
	Letters int64  // bytes of dead letters
	Note    string
}

// reported are the scenarios of which the state before is as it was reported, not as it was measured here.
var reported = []string{"bounds-calibrate", "clock-let-go", "clock-silent", "doors-connect", "doors-files",
	"doors-login", "epoch-remade-input", "epoch-topic-store", "mem-keys", "models-classes", "models-names",
	"poison-panic", "poison-process-dies"}

// TestHostile sends a deployment on a real broker what an attacker, a faulty producer or a lost directory would. Beside
// each a good model goes on, with exact numbers. PLUMBLINE_DOCS=1 rewrites bench/results/attack.md.
func TestHostile(t *testing.T) {
	t.Parallel()
	attacks := make([]attack, len(hostile))
	names := slices.Sorted(maps.Keys(hostile))
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostile[name](t, &attacks[i])
		})
	}
	t.Cleanup(func() { // after all of them
		table := attackTable(names, attacks)
		t.Logf("table:\n%s", table)
		if !t.Failed() {
			writeSection(t, "attack", table)
		}
	})
}

func attackTable(names []string, attacks []attack) string {
	var table strings.Builder
	table.WriteString("| scenario | input | before | good model's lag | exact | RSS MB | restarts " +
		"| dead letters, bytes | |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for i, a := range attacks {
		if a == (attack{}) { // -run left it out
			continue
		}
		lag, exact := a.Lag, fmt.Sprint(a.Exact)
		if lag == "" { // without a good model
			lag, exact = "–", "–"
		}
		rss := "–"
		if a.RSS > 0 {
			rss = fmt.Sprint(a.RSS >> 20)
		}
		if slices.Contains(reported, names[i]) {
			a.Before = "reported: " + a.Before
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %d | %d | %s |\n", names[i], a.Input, a.Before, lag, exact,
			rss, a.Restart, a.Letters, strings.TrimSuffix(a.Note, "; "))
	}
	return table.String()
}

// exact checks the state of the good model.
func (a *attack) exact(t *testing.T, p *process, want string) {
	t.Helper()
	got := p.hashOf("good")
	if a.Exact = got == want; !a.Exact {
		t.Errorf("the good model's state is %s, want that of its rows alone, %s", got, want)
	}
}

// goodRows is the length of goodStream.
const goodRows = 4000

// goodStream is a good model's stream, whose state is known.
func goodStream(t *testing.T, s settings) []kafka.Message {
	t.Helper()
	all := loadRows(t, "c10jpeg_resnet_logits.npz", "resnet20", 10)
	rows := &feed.Rows{N: goodRows, K: 10, Scores: all.Scores[:goodRows*10], Label: all.Label[:goodRows]}
	src, err := rows.Open(feed.Order{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{Model: "good", Version: "1", Partitions: partitions, EventRate: 100,
		Start: start.UnixNano(), DelayMax: 30 * time.Second, Batch: 8, Seed: 5, End: true})
	if err != nil {
		t.Fatal(err)
	}
	msgs, _, _ := feedMessages(t, f, s, math.MaxInt)
	return msgs
}

var goodAlone struct {
	sync.Once
	hash string
}

// goodHash is the state of the good model when nothing else is sent.
func goodHash(t *testing.T) string {
	t.Helper()
	goodAlone.Do(func() {
		s := configure(t, oneDay)
		p := run(t, s)
		kafkatest.Write(t, brokers, goodStream(t, s)...)
		p.drain(goodRows, goodRows)
		goodAlone.hash = p.hashOf("good")
		p.stop()
	})
	if goodAlone.hash == "" {
		t.Fatal("the good model has no state when nothing else is sent")
	}
	return goodAlone.hash
}

// replayed are the state hashes by model of a replay of the topics.
func replayed(t *testing.T, s settings, binary string) map[string]string {
	t.Helper()
	var again struct {
		Models map[string]string `json:"state_hash_by_model"`
	}
	out, err := exec.Command(binary, "replay", "-c", s.file, "--json", "--topic").Output()
	if err == nil {
		err = json.Unmarshal(out, &again)
	}
	if err != nil {
		t.Errorf("replay: %v\n%s", err, tail(out))
	}
	return again.Models
}

// hashOf is the state hash of a model. A model task has one when no pane has come for two checkpoints: where idle
// sources let time go on, that may be after a process has said once that it is drained.
func (p *process) hashOf(model string) string {
	p.t.Helper()
	var hash string
	p.wait(30*time.Second, "have the state hash of "+model, func() bool {
		var answer struct {
			Process struct {
				Models map[string]string `json:"state_hash_by_model"`
			} `json:"process"`
		}
		p.mustGet("/api/v1/status", &answer)
		hash = answer.Process.Models[model]
		return hash != ""
	})
	return hash
}
