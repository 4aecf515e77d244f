//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
)

// records decodes every message of a topic of JSON records, partition by partition.
func records[T any](t *testing.T, topic string) []T {
	t.Helper()
	var all []T
	for _, m := range kafkatest.ReadAll(t, brokers, topic) {
		var v T
		if err := json.Unmarshal(m.Value, &v); err != nil {
			t.Fatalf("%s/%d@%d: %v", topic, m.Partition, m.Offset, err)
		}
		all = append(all, v)
	}
	return all
}

// lastSnapshots is the last value on the snapshots topic by key and window: what a reader of the topic ends up with.
func lastSnapshots(t *testing.T, topic string) map[string]string {
	t.Helper()
	last := map[string]string{}
	for _, m := range kafkatest.ReadAll(t, brokers, topic) {
		var s record.Snapshot
		if err := json.Unmarshal(m.Value, &s); err != nil {
			t.Fatalf("%s/%d@%d: %v", topic, m.Partition, m.Offset, err)
		}
		last[fmt.Sprintf("%s %s %s", m.Key, s.Window.Name, s.Window.Start)] = string(m.Value)
	}
	return last
}

// latest decodes the last snapshots of the topic.
func latest(t *testing.T, s settings) []record.Snapshot {
	t.Helper()
	last := lastSnapshots(t, s.topic("snapshots"))
	var all []record.Snapshot
	for _, key := range slices.Sorted(maps.Keys(last)) {
		var v record.Snapshot
		if err := json.Unmarshal([]byte(last[key]), &v); err != nil {
			t.Fatalf("snapshot of %s: %v", key, err)
		}
		all = append(all, v)
	}
	return all
}

// distinct is the set of values of a topic by key, in order: repeats after a crash must be the same bytes.
func distinct(t *testing.T, topic string) []string {
	t.Helper()
	var all []string
	for _, m := range kafkatest.ReadAll(t, brokers, topic) {
		all = append(all, string(m.Key)+" "+string(m.Value))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
