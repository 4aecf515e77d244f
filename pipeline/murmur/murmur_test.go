package murmur

import (
	"math/rand/v2"
	"testing"

	"github.com/segmentio/kafka-go"
)

// TestPartitionOf compares with kafka-go's partitioner, which is tested against the Java client.
func TestPartitionOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	slow := kafka.Murmur2Balancer{Consistent: true}
	for i := range 5000 {
		key := make([]byte, i%40)
		for j := range key {
			key[j] = byte(rng.Uint32())
		}
		n := 1 + rng.IntN(20)
		all := make([]int, n)
		for j := range all {
			all[j] = j
		}
		if got, want := PartitionOf(key, n), slow.Balance(kafka.Message{Key: key}, all...); got != want {
			t.Fatalf("key %x of %d: got %d, want %d", key, n, got, want)
		}
	}
}
