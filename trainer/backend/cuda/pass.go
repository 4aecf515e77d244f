package cuda

// rowThreads is how many threads a row of k numbers gets: a power of two from a warp up to 256.
func rowThreads(k int) int {
	t := 32
	for t < k && t < 256 {
		t *= 2
	}
	return t
}

// blocks is how many blocks of 256 threads n elements take.
func blocks(n int) int { return (n + 255) / 256 }

// maxBlocks bounds the blocks of kernels whose threads go on with the next element.
const maxBlocks = 4096

// batchOf says where a forward pass takes features from.
type batchOf struct {
	source *source
	slot   *slot // for streamed features, which lie there from row 0
	from   int
	// steps is set for mini-batches of an epoch, whose rows are listed.
	steps, mix bool
}

// input fills x with n rows.
func (s *session) input(b batchOf, n int) error {
	slab, place, from, moves := b.source.slab, b.source.place, b.from, b.steps
	var rows, partners, lambda, slab2 uint64
	if b.steps {
		rows = s.lists.rows.at
	}
	if b.mix {
		slab2, partners, lambda = slab, s.lists.partners.at, s.lists.lambda.at
	}
	if b.slot != nil {
		slab, place, from, moves, rows, partners = b.slot.at, 0, 0, false, 0, 0
		if b.mix {
			slab2 = slab + uint64(n*s.p.Train.D*b.source.width())
		}
	}
	// float16 has the 11 bits of TF32.
	s.exact = 0
	if b.source.half && !b.mix {
		s.exact = s.x
	}
	epoch := s.still
	if b.steps {
		epoch = s.epoch
	}
	return s.launch(features, n, 1, min(256, 32*((s.p.Train.D+31)/32)), ptr(epoch), ptr(s.x), num(s.p.Train.D), ptr(slab), ptr(slab2),
		boolean(b.source.half), ptr(place), ptr(rows), ptr(partners), ptr(lambda), num(from), boolean(moves))
}

// forward computes the logits of the n rows of x. weights is params or view; biases are always params'.
func (s *session) forward(weights uint64, n int) error {
	in := s.x
	for i, l := range s.layers {
		if err := s.gemm(product{tb: true, m: n, n: l.out, k: l.in, a: in, b: weights + 4*uint64(l.w), c: l.act}); err != nil {
			return err
		}
		relu := i < len(s.layers)-1
		if err := s.launch(biased, n, 1, rowThreads(l.out), num(l.out), boolean(relu), ptr(s.params+4*uint64(l.b)), ptr(l.act)); err != nil {
			return err
		}
		in = l.act
	}
	return nil
}

// backward computes the gradients of the parameters from that of the logits.
func (s *session) backward(weights uint64, n int) error {
	for i := len(s.layers) - 1; i >= 0; i-- {
		l, in := s.layers[i], s.x
		if i > 0 {
			in = s.layers[i-1].act
		}
		if err := s.gemm(product{ta: true, m: l.out, n: l.in, k: n, a: l.delta, b: in, c: s.grads + 4*uint64(l.w)}); err != nil {
			return err
		}
		if err := s.launch(columnSums, (l.out+31)/32, 1, 1024, num(n), num(l.out), ptr(l.delta), ptr(s.grads+4*uint64(l.b))); err != nil {
			return err
		}
		if i == 0 {
			break
		}
		below := s.layers[i-1]
		if err := s.gemm(product{m: n, n: l.in, k: l.out, a: l.delta, b: weights + 4*uint64(l.w), c: below.delta}); err != nil {
			return err
		}
		if err := s.launch(reluBack, n, 1, rowThreads(l.in), num(l.in), ptr(below.act), ptr(below.delta)); err != nil {
			return err
		}
	}
	return nil
}

// applyMasks fills view and mask for the step of an epoch's parameters.
func (s *session) applyMasks(epoch uint64) error {
	for i, l := range s.layers {
		w := 4 * uint64(l.w)
		if err := s.launch(masked, blocks((l.in*l.out+3)/4), 1, 256, ptr(epoch), num(i), num(l.in*l.out), ptr(s.params+w),
			ptr(s.view+w), ptr(s.mask+uint64(l.w))); err != nil {
			return err
		}
	}
	return nil
}

// logits is where the last layer's outputs are, deltas the gradient with respect to them.
func (s *session) logits() uint64 { return s.layers[len(s.layers)-1].act }
func (s *session) deltas() uint64 { return s.layers[len(s.layers)-1].delta }
