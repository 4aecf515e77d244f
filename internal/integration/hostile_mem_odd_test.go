//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
)

func init() { hostile["mem-odd"] = oddMessages }

// oddNames are names that no honest producer has: nothing, those that have a meaning here, in files or on a terminal,
// what looks like another name, and what is no text.
func oddNames() []string {
	return []string{"", " ", ".", "..", "../../../../tmp/odd-escape", "/etc/odd", `..\..\odd`, "~other", "~", "a/b/c",
		"good ", "GOOD", "g\u043e\u043ed", "\uff47\uff4f\uff4f\uff44", "a\x00b", "\x1b[31mred\x1b[2J",
		"a\rb\nc level=ERROR msg=forged", "\u202egnp.exe", "\ufeffgood", "\u200bgood", "\xff\xfe",
		"<script>alert(1)</script>", "' OR 1=1 --", "%2e%2e%2f", "{{.}}", "a=b,c=d", "__HIVE_DEFAULT_PARTITION__",
		"model=good", strings.Repeat("m", 300), strings.Repeat("n", 1<<20-4096)}
}

// oddTimes are event times in other units, before all others and after them.
func oddTimes() []arrowio.Time {
	ns := start.UnixNano()
	return []arrowio.Time{0, 1, -1, math.MinInt64, math.MaxInt64, ns / 1e6, ns / 1e3, ns / 1e9, -ns,
		ns + int64(24*time.Hour), ns - int64(10*365*24*time.Hour)}
}

// oddRow is a message of one labelled row.
func oddRow(t *testing.T, model, version, cohort, id string, at arrowio.Time) []byte {
	t.Helper()
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: model, Version: version, IDs: []string{id}, K: 3,
		TS: []arrowio.Time{at}, Label: []int32{1}, Logits: []float32{0, 2, 1},
		D: 2, Features: []float32{1, 2},
		Slices: []arrowio.StringColumn{{Name: "cohort", Values: []string{cohort}}}})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// oddPieces is one message for each odd name in each place, each odd time, and odd records of Kafka.
func oddPieces(t *testing.T, s settings) (msgs []kafka.Message) {
	add := func(m kafka.Message) {
		m.Topic, m.Partition = s.topic("logits"), len(msgs)%partitions
		if m.Time.IsZero() {
			m.Time = start
		}
		msgs = append(msgs, m)
	}
	at := start.Add(goodRows / 2 * 10 * time.Millisecond).UnixNano() // as the good rows beside them
	for i, name := range oddNames() {
		id := fmt.Sprint("odd-", i)
		add(kafka.Message{Value: oddRow(t, name, "1", "x", id, at)})
		add(kafka.Message{Value: oddRow(t, "odd", name, "x", id, at)})
		add(kafka.Message{Value: oddRow(t, "odd", "1", name, id, at)})
		add(kafka.Message{Value: oddRow(t, "odd", "1", "x", name, at)})
		add(kafka.Message{Value: []byte(name), Key: []byte(name)})
		add(kafka.Message{Value: oddRow(t, "odd", "1", "x", id+"-h", at),
			Headers: []kafka.Header{{Key: name, Value: []byte(name[:min(len(name), 1000)])}}})
	}
	for i, ts := range oddTimes() {
		add(kafka.Message{Value: oddRow(t, "clocks", "1", "x", fmt.Sprint("clock-", i), ts)})
		add(kafka.Message{Value: oddRow(t, "clocks", "1", "x", fmt.Sprint("record-", i), at),
			Time: time.Unix(0, min(max(ts, 0), at))})
	}
	many := make([]kafka.Header, 10_000)
	for i := range many {
		many[i] = kafka.Header{Key: fmt.Sprint("model", i%3), Value: []byte("good")}
	}
	add(kafka.Message{Value: oddRow(t, "odd", "1", "x", "headers", at), Headers: many})
	add(kafka.Message{Headers: many})
	add(kafka.Message{})
	return msgs
}

// oddMessages sends odd names, times, keys and headers between the halves of a good stream: the log and the
// commands show none of them as it is, and no file lies outside the archive.
func oddMessages(t *testing.T, a *attack) {
	dir := t.TempDir()
	config := oneDay + fmt.Sprintf("slices: {columns: [cohort]}\narchive: {directory: %q, roll_rows: 100}\n", dir)
	want := goodHashOf(t, config)
	s := configure(t, config)
	p := run(t, s)
	good, odd := goodStream(t, s), oddPieces(t, s)
	a.Before = "16 to 35 s of lag: rows of 1970 open windows of a day, thousands of panes long"
	a.Input = fmt.Sprintf("%d messages: %d odd names in each place, %d odd times, 10,000 headers", len(odd),
		len(oddNames()), len(oddTimes()))
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	for _, m := range odd { // some are nearly as large as a request may be
		kafkatest.Write(t, brokers, m)
	}
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	p.wait(time.Minute, "show the good model's rows", func() bool {
		return slices.ContainsFunc(latest(t, s), func(x record.Snapshot) bool {
			return x.Model == "good" && x.Slice == "" && x.Labelled == goodRows
		})
	})
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	p.drain(goodRows, goodRows)
	a.exact(t, p, want)
	a.RSS, a.Restart = p.peak(), p.restarts()
	const most = 400 << 20
	if a.RSS > most || a.Restart > 0 {
		t.Errorf("resident memory: %d MB, want at most %d; tasks ended %d times", a.RSS>>20, most>>20, a.Restart)
	}
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += int64(len(m.Value))
	}
	shows(t, "the models on a terminal", runOK(t, "models", "list", "--url", "http://"+s.listen))
	shows(t, "the dead letters on a terminal", runOK(t, "deadletters", "-c", s.file))
	// Rows of the model clocks are late or not by which shard comes first.
	live := map[string]string{"good": p.hashOf("good"), "odd": p.hashOf("odd")}
	log := p.whole()
	p.stop()
	shows(t, "the log", log)
	if n := bytes.Count(log, []byte("\n")); n > 400 {
		t.Errorf("%d lines of log", n)
	}
	again := replayed(t, s, binary)
	for model, hash := range live {
		if again[model] != hash {
			t.Errorf("%s: a replay has %s, the live run %s", model, again[model], hash)
		}
	}
	insideOf(t, dir) // what the replay has written, as a running process does every ten minutes
	a.Note = fmt.Sprintf("%d KB of log; a replay has the same state; all files lie in the archive", len(log)>>10)
}

// goodHashOf is the state of the good model with a configuration when nothing else is sent.
func goodHashOf(t *testing.T, config string) string {
	t.Helper()
	s := configure(t, config)
	p := run(t, s)
	kafkatest.Write(t, brokers, goodStream(t, s)...)
	p.drain(goodRows, goodRows)
	defer p.stop()
	return p.hashOf("good")
}

// shows checks that a text has nothing that a terminal would obey or that turns lines around.
func shows(t *testing.T, what string, text []byte) {
	t.Helper()
	if !utf8.Valid(text) {
		t.Errorf("%s is no text", what)
	}
	for i, r := range string(text) {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%s has %U: %q", what, r, text[max(0, i-100):min(len(text), i+20)])
			return
		}
	}
	for line := range bytes.Lines(text) {
		if len(line) > 64<<10 {
			t.Errorf("%s has a line of %d bytes", what, len(line))
			return
		}
	}
}

// insideOf checks that the archive's files lie where they should.
func insideOf(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files++
			rel, _ := filepath.Rel(dir, path)
			if strings.Count(rel, string(filepath.Separator)) != 2 && !strings.HasPrefix(filepath.Base(rel), ".") {
				t.Errorf("a file of the archive is %q", rel)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the archive (%v)", files, err)
	}
	for _, path := range []string{"/tmp/odd-escape", "/etc/odd"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}
