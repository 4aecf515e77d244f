package kafkaclient

import (
	"testing"

	"github.com/segmentio/kafka-go/protocol/metadata"
)

// TestReplicasInSync: a topic has as many in sync as the partition with the fewest, in whatever order they come.
func TestReplicasInSync(t *testing.T) {
	partition := func(replicas, inSync int) metadata.ResponsePartition {
		return metadata.ResponsePartition{ReplicaNodes: make([]int32, replicas), IsrNodes: make([]int32, inSync)}
	}
	for name, c := range map[string]struct {
		of             []metadata.ResponsePartition
		behind, inSync int
	}{
		"all":              {[]metadata.ResponsePartition{partition(3, 3), partition(3, 3)}, 0, 3},
		"one replica":      {[]metadata.ResponsePartition{partition(1, 1), partition(1, 1)}, 0, 1},
		"behind last":      {[]metadata.ResponsePartition{partition(3, 3), partition(3, 1)}, 1, 1},
		"behind first":     {[]metadata.ResponsePartition{partition(3, 1), partition(3, 2)}, 2, 1},
		"none, then fewer": {[]metadata.ResponsePartition{partition(3, 0), partition(3, 2)}, 2, 0},
		"none, then all":   {[]metadata.ResponsePartition{partition(3, 0), partition(3, 3)}, 1, 0},
		"no partition":     {nil, 0, 0},
	} {
		got := topicOf(metadata.ResponseTopic{Partitions: c.of}, false)
		if got.Behind != c.behind || got.InSync != c.inSync {
			t.Errorf("%s: %d behind, %d in sync, want %d and %d", name, got.Behind, got.InSync, c.behind, c.inSync)
		}
	}
}
