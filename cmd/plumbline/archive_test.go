package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// archiveMessages are records of the logits and labels topics with three features a row, which say the row's number and
// label.
func archiveMessages(t *testing.T, rows []batchtest.Row, partitions int, until int64) []kafka.Message {
	t.Helper()
	var ms []kafka.Message
	for p, part := range batchtest.Split(rows, partitions) {
		for at := 0; at < len(part); at += 50 {
			some := part[at:min(at+50, len(part))]
			c := arrowio.Columns{Model: "m", Version: "v1", K: len(some[0].Scores), D: 3}
			for _, r := range some {
				c.IDs, c.TS, c.Logits = append(c.IDs, r.ID), append(c.TS, r.TS), append(c.Logits, r.Scores...)
				c.Features = append(c.Features, archivedFeatures(&r)...)
			}
			b, err := arrowio.EncodePredictions(c)
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, kafka.Message{Topic: "plumbline.logits", Partition: p, Value: b,
				Time: time.Unix(0, some[len(some)-1].TS)})
		}
		for _, r := range batchtest.Labels(t, batchtest.ByLabelTime(part), 50) {
			ms = append(ms, kafka.Message{Topic: "plumbline.labels", Partition: p, Value: r.Value,
				Time: time.Unix(0, r.Time)})
		}
		for _, topic := range []string{"plumbline.logits", "plumbline.labels"} {
			ms = append(ms, kafka.Message{Topic: topic, Partition: p, Value: []byte{}, Time: time.Unix(0, until),
				Headers: []kafka.Header{{Key: pipeline.WatermarkHeader, Value: strconv.AppendInt(nil, until, 10)}}})
		}
	}
	return ms
}

func archivedFeatures(r *batchtest.Row) []float32 {
	i, _ := strconv.Atoi(strings.Split(r.ID, "-")[1])
	return []float32{float32(i / 64), float32(i % 64), float32(r.Label)}
}

// archivedRows counts the rows of an archive by features and label.
func archivedRows(t *testing.T, dir string) map[string]int {
	t.Helper()
	out := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".arrow") {
			return nil
		}
		tab, err := table.Open(path, table.Options{})
		if err != nil {
			return err
		}
		for i := range tab.N {
			out[fmt.Sprint(tab.Features[i*tab.D:(i+1)*tab.D], tab.Label[i], tab.TS[i])]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRunArchives runs with an archive over a restart, with checkpoints in a directory and in a topic; then replays the
// topics, and trains on what is there.
func TestRunArchives(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const partitions = 2
	rows := batchtest.Rows(31, batchtest.Options{N: 1200, MaxLag: 20 * batchtest.Second, Unlabelled: .1})
	until := rows[len(rows)-1].TS + 200*batchtest.Second
	want := map[string]int{}
	for i := range rows {
		if r := &rows[i]; r.Label >= 0 {
			want[fmt.Sprint(archivedFeatures(r), r.Label, r.TS)] = 1
		}
	}
	for _, store := range []string{pipeline.StoreDirectory, pipeline.StoreTopic} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			brokers, dir, again := kafkatest.Start(t), t.TempDir(), t.TempDir()
			text := fmt.Sprintf(`
kafka: {brokers: [%q], partitions: %d}
event_time: {idle_timeout: 0s, max_ahead: 0s}
http: {listen: ""}
join: {memory_bytes: 10000}
archive: {directory: %q, roll_time: 20s, roll_rows: 150}
checkpoints: {dir: %q, interval: 100ms, rows: 200, store: %s}
topics: {keyed: true}
`, brokers[0], partitions, "DIR", t.TempDir(), store)
			_, cfg := deploy(t, strings.ReplaceAll(text, "DIR", dir))
			all, err := parseStages("all")
			if err != nil {
				t.Fatal(err)
			}
			half := rows[len(rows)/2].TS
			ms := archiveMessages(t, rows, partitions, until)
			first := slices.DeleteFunc(slices.Clone(ms), func(m kafka.Message) bool { return m.Time.UnixNano() > half })
			kafkatest.Write(t, brokers, first...)
			rt, stop := start(t, cfg, all)
			drained(t, rt)
			stop()
			kafkatest.Write(t, brokers,
				slices.DeleteFunc(ms, func(m kafka.Message) bool { return m.Time.UnixNano() <= half })...)
			rt, stop = start(t, cfg, all)
			drainedAt(t, rt, until)
			eventually.True(t, "all rows are in the archive", func() bool {
				return maps.Equal(archivedRows(t, dir),
					want)
			})
			rt.Archive.Sweep()
			stats := rt.Archive.Totals()
			stop()
			if got := archivedRows(t, dir); !maps.Equal(got, want) {
				t.Fatalf("%d rows in the archive, want %d", len(got), len(want))
			}
			if stats.Rows != int64(len(want)) || stats.Files < 8 || stats.Failed > 0 {
				t.Errorf("got %+v", stats)
			}
			run(t, "replay", "-c", writeFile(t, "replay.yaml", strings.ReplaceAll(text, "DIR", again)), "--topic")
			if got := archivedRows(t, again); !maps.Equal(got, want) {
				t.Errorf("%d rows in the archive of the replay, want %d", len(got), len(want))
			}
			trainOnArchive(t, dir, again, len(want))
		})
	}
}

// trainOnArchive trains on an archive, and on it and the replay's together, which have the same rows.
func trainOnArchive(t *testing.T, dir, again string, n int) {
	t.Helper()
	inMemory := trainJSON(t, dir, "--recipe", "bottleneck", "--epochs", "2", "--holdout", "0.1")
	if r := inMemory.Rows; inMemory.D != 3 || inMemory.K != 4 || r["rows"] != float64(n-int(0.1*float64(n)+.5)) ||
		r["streamed"] != false || r["order"] != "time" || r["repeated"] != 0. {
		t.Errorf("got D %d, K %d, rows %v", inMemory.D, inMemory.K, r)
	}
	if tr, held := inMemory.Rows["train_time"].(map[string]any),
		inMemory.Rows["held_out_time"].(map[string]any); tr["to"].(string) > held["from"].(string) ||
		!strings.HasPrefix(tr["from"].(string), "2026-01-31T00:00:00") {
		t.Errorf("times %v and %v", tr, held)
	}
	if err := os.CopyFS(filepath.Join(dir, "replay"), os.DirFS(again)); err != nil {
		t.Fatal(err)
	}
	twice := trainJSON(t, dir, "--recipe", "bottleneck", "--epochs", "2", "--holdout", "0.1", "--memory", "0")
	if r := twice.Rows; r["repeated"] != float64(n) || r["rows"] != inMemory.Rows["rows"] || r["streamed"] != true {
		t.Errorf("rows %v", r)
	}
	// The same rows; those that stay in files come in another order in each epoch.
	a, b := inMemory.Validation.After["nll"].(float64), twice.Validation.After["nll"].(float64)
	if a > 2 || b > 2 || b > a+.2 || a > b+.2 {
		t.Errorf("NLL %v from memory, %v from files", a, b)
	}
}
