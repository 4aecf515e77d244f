package feed

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
