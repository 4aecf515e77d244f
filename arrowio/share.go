package arrowio

import "encoding/binary"

// shareSeed keeps the ids of a share apart from those of the sample and of the partitions, which other hashes of the
// same id choose.
const shareSeed = 0x9e3779b97f4a7c15

// InShare reports whether a row is in a share of the ids, by the hash of its id: whether a canary calibrates it. It is
// a function of id and share alone, the same in every process, and a larger share holds every smaller one.
func InShare(id ID, share float64) bool {
	// The finaliser of MurmurHash3 over both halves: every bit of the id reaches every bit of h.
	h := binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:])*3 ^ shareSeed
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return float64(h>>11) < share*(1<<53)
}
