// Package murmur places a record by its key. It is a leaf, because programs that import the client link it.
package murmur

import "encoding/binary"

// PartitionOf is the partition of a record's key among n, as Kafka's default partitioner has it:
//
//	(murmur2(key) & 0x7fffffff) mod n
//
// Reference: org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner.partitionForKey.
func PartitionOf(key []byte, n int) int {
	if n == 1 {
		return 0
	}
	return int(murmur2(key)&0x7fffffff) % n
}

// murmur2 is the 32-bit MurmurHash2 with Kafka's seed; blocks are little endian.
func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
	)
	h := uint32(seed) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		h = h*m ^ (k^k>>24)*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
