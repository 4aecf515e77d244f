//go:build integration

package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// result is everything that must not depend on what happened on the way.
type result struct {
	hash        string            // of all models
	models      map[string]string // by model
	counts      map[string]int64  // of all shards
	snapshots   map[string]string // the last by key and window
	calibrators []string          // distinct records
	alerts      []string
}

// view is what the processes say about themselves, put together.
type view struct {
	shards, tasks map[int]int // how many processes have a partition
	drained       bool
	counts        map[string]int64
	models        map[string]string
	err           error
}

func (d *deployment) view() view {
	v := view{shards: map[int]int{}, tasks: map[int]int{}, drained: true, counts: map[string]int64{},
		models: map[string]string{}}
	for _, w := range d.workers {
		st, err := w.status()
		if err != nil {
			v.err = errors.Join(v.err, fmt.Errorf("worker %d: %w", w.number, err))
			continue
		}
		// A process without tasks has nothing to drain.
		v.drained = v.drained && (st.Drained || len(st.Tasks) == 0) && len(st.Failing) == 0
		for _, t := range st.Tasks {
			if t.Task != "shard" {
				v.tasks[t.Partition]++
				continue
			}
			v.shards[t.Partition]++
			for name, n := range t.Counts {
				v.counts[name] += n
			}
		}
		maps.Copy(v.models, st.Models)
	}
	return v
}

// assigned is nil when every partition has one shard and one model task.
func (v view) assigned(partitions int) error {
	for p := range partitions {
		if v.shards[p] != 1 || v.tasks[p] != 1 {
			return fmt.Errorf("partition %d is with %d shards and %d model tasks; %w", p, v.shards[p], v.tasks[p],
				errors.Join(v.err, errNotYet))
		}
	}
	return nil
}

var errNotYet = errors.New("not yet")

func (v view) hash() string {
	h := sha256.New()
	for _, m := range slices.Sorted(maps.Keys(v.models)) {
		fmt.Fprintf(h, "%s=%s\n", m, v.models[m])
	}
	return hex.EncodeToString(h.Sum(nil))
}

type workerStatus struct {
	Drained bool              `json:"drained"`
	Models  map[string]string `json:"state_hash_by_model"`
	Tasks   []struct {
		Task      string           `json:"task"`
		Partition int              `json:"partition"`
		Counts    map[string]int64 `json:"counts"`
	} `json:"tasks"`
	Failing []struct {
		Cause string `json:"cause"`
	} `json:"failing"`
}

func (w *worker) status() (st workerStatus, err error) {
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + w.listen + "/api/v1/status")
	if err != nil {
		return st, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return st, err
	}
	var answer struct {
		Process workerStatus `json:"process"`
	}
	err = json.Unmarshal(body, &answer)
	return answer.Process, err
}

// drain waits until the processes have read everything that in sends, and nothing has changed for a moment.
func (d *deployment) drain(predictions, labels int64, limit time.Duration) view {
	d.t.Helper()
	var last, v view
	since := time.Now()
	within(d.t, limit, "drain", func() error {
		v = d.view()
		if err := v.assigned(d.partitions); err != nil {
			return err
		}
		if !v.drained || v.counts["predictions"] < predictions || v.counts["labels"] < labels {
			return fmt.Errorf("drained %v; %d of %d predictions, %d of %d labels", v.drained, v.counts["predictions"],
				predictions, v.counts["labels"], labels)
		}
		if last.models == nil || v.hash() != last.hash() || !maps.Equal(v.counts, last.counts) {
			last, since = v, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return errNotYet
		}
		return nil
	})
	return v
}

// result reads the outputs; the processes have drained and stopped.
func (d *deployment) result(v view) result {
	d.t.Helper()
	r := result{hash: v.hash(), models: v.models, counts: v.counts, snapshots: map[string]string{}}
	at := map[string]record.Time{}
	for _, m := range d.read("snapshots") {
		var s record.Snapshot
		if err := json.Unmarshal(m.Value, &s); err != nil {
			d.t.Fatalf("snapshots/%d@%d: %v", m.Partition, m.Offset, err)
		}
		// The latest is not always the last: docs/operations.md, Fencing.
		key := fmt.Sprintf("%s %s %s", m.Key, s.Window.Name, s.Window.Start)
		if !at[key].After(s.At) {
			r.snapshots[key], at[key] = string(m.Value), s.At
		}
	}
	distinct := func(topic string) []string {
		var all []string
		for _, m := range d.read(topic) {
			all = append(all, string(m.Key)+" "+string(m.Value))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	r.calibrators, r.alerts = distinct("calibrators"), distinct("alerts")
	return r
}

// read returns the records of a topic, by partition in order of offset.
func (d *deployment) read(name string) []*kgo.Record {
	d.t.Helper()
	topic := d.topic(name)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	ends := map[int32]int64{}
	admin := d.cluster.client(d.t)
	for p := range d.partitions {
		within(d.t, time.Minute, "list the offsets of "+topic, func() error {
			first, end, err := kafkaio.Bounds(ctx, admin, topic, p)
			if err == nil && end > first {
				ends[int32(p)] = end
			}
			return err
		})
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(d.cluster.addrs...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer client.Close()
	var all []*kgo.Record
	for len(ends) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			d.t.Fatalf("read %s: partitions to offsets %v are left: %v", topic, ends, fetches.Err0())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			all = append(all, r)
			if end, ok := ends[r.Partition]; ok && r.Offset >= end-1 {
				delete(ends, r.Partition)
			}
		})
	}
	slices.SortStableFunc(all, func(a, b *kgo.Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return all
}

// deleteTopics frees the brokers' disks; a topic that stays does no harm.
func (d *deployment) deleteTopics() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := d.cluster.client(d.t).DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: d.topics()}); err != nil {
		d.t.Logf("delete the topics of %s: %v", d.prefix, err)
	}
}

// conserve checks that every row that was sent has one fate: joined, and counted in the labelled statistics.
func conserve(t *testing.T, counts map[string]int64, rows int64) {
	t.Helper()
	for _, name := range []string{"predictions", "labels", "joined", "labelled"} {
		if counts[name] != rows {
			t.Errorf("count %s: got %d, want the %d rows sent", name, counts[name], rows)
		}
	}
	if n, detail := pipeline.Unaccounted(counts); n != 0 {
		t.Errorf("the counts do not add up: %s", detail)
	}
	for name, n := range counts {
		head, _, _ := strings.Cut(name, ":")
		switch head {
		case "late", "expired", "orphans", "evicted", "evicted_labels", "pooled", "rejected", "rejected_joins",
			"dead_letters", "duplicates",
			"corrections", "waiting", "waiting_labels":
			if n != 0 {
				t.Errorf("count %s: got %d, want 0", name, n)
			}
		}
	}
}

// compare checks that a disturbed run has ended as the undisturbed one did.
func compare(t *testing.T, got, want result) {
	t.Helper()
	if got.hash != want.hash {
		t.Errorf("state hash: got %s, want %s of the undisturbed run; by model %v, want %v", got.hash, want.hash,
			got.models, want.models)
	}
	if g, w := rowCounts(got.counts), rowCounts(want.counts); !maps.Equal(g, w) {
		t.Errorf("counts: got %v, want those of the undisturbed run, %v", g, w)
	}
	compareSnapshots(t, got.snapshots, want.snapshots)
	compareRecords(t, "calibrators", got.calibrators, want.calibrators)
	compareRecords(t, "alerts", got.alerts, want.alerts)
}

// rowCounts leaves out the numbers of messages, which are not rows.
func rowCounts(counts map[string]int64) map[string]int64 {
	out := maps.Clone(counts)
	maps.DeleteFunc(out, func(name string, n int64) bool {
		return n == 0 || name == "control" || strings.HasPrefix(name, "messages:")
	})
	return out
}

func compareRecords(t *testing.T, topic string, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: the undisturbed run wrote none; the test needs some", topic)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %d distinct records, want the %d of the undisturbed run:\n%.600q\n%.600q", topic, len(got),
			len(want), got, want)
	}
}
