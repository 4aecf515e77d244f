package pipeline

import "github.com/segmentio/kafka-go"

// PartitionOf is Kafka's default partitioner: (murmur2(key) & 0x7fffffff) mod n.
func PartitionOf(key []byte, n int) int {
	if n == 1 {
		return 0
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return kafka.Murmur2Balancer{Consistent: true}.Balance(kafka.Message{Key: key}, all...)
}
