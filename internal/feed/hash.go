package feed

// Partition returns the partition of an id among n, as Kafka's default partitioner does for a record's key:
//
//	(murmur2(id) & 0x7fffffff) mod n
//
// Reference: org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner.partitionForKey.
func Partition(id []byte, n int) int32 {
	return int32((murmur2(id) & 0x7fffffff) % uint32(n))
}

// murmur2 is the 32-bit MurmurHash2 with Kafka's seed. Blocks are little endian.
func murmur2(data []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// splitmix is output i of the SplitMix64 generator whose state starts at seed's own output 0, so that neighbouring
// seeds give unrelated sequences. Reference: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014.
func splitmix(seed, i uint64) uint64 {
	const gamma = 0x9e3779b97f4a7c15
	return finalise(finalise(seed+gamma) + (i+1)*gamma)
}

func finalise(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
