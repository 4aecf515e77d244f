// Package digits is what `plumbline demo` monitors: 1,797 images of handwritten digits, a small network trained on half
// of them, and an endless stream of its answers to the other half, in which the images change from a chosen row on.
//
//	set, err := digits.Load()
//	train, held := set.Split(seed)
//	net := digits.Train(train, seed)
//	stream := digits.NewStream(net, held, digits.StreamOptions{Seed: seed, ShiftAt: 20000})
//	for { stream.Next(&row) }
//
// Every number is computed from pixels: shifting edits images, never logits. Equal seeds give equal streams.
package digits
