package cuda

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
	d := s.p.Train.D
	perRow := grid{x: n, y: 1, threads: min(256, 32*((d+31)/32))}
	return s.launch(features, perRow, ptr(epoch), ptr(s.x), num(d), ptr(slab), ptr(slab2), boolean(b.source.half),
		ptr(place), ptr(rows), ptr(partners), ptr(lambda), num(from), boolean(moves))
}

// forward computes the logits of the n rows of x. weights is params or view; biases are always params'.
func (s *session) forward(weights uint64, n int) error {
	in := s.x
	for i, l := range s.layers {
		outputs := product{tb: true, m: n, n: l.out, k: l.in, a: in, b: float32At(weights, l.w), c: l.act}
		if err := s.gemm(outputs); err != nil {
			return err
		}
		relu, bias := i < len(s.layers)-1, float32At(s.params, l.b)
		if err := s.launch(biased, eachRow(n, l.out), num(l.out), boolean(relu), ptr(bias), ptr(l.act)); err != nil {
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
		ofWeights := product{ta: true, m: l.out, n: l.in, k: n, a: l.delta, b: in, c: float32At(s.grads, l.w)}
		if err := s.gemm(ofWeights); err != nil {
			return err
		}
		columns, ofBiases := grid{x: (l.out + 31) / 32, y: 1, threads: 1024}, float32At(s.grads, l.b)
		if err := s.launch(columnSums, columns, num(n), num(l.out), ptr(l.delta), ptr(ofBiases)); err != nil {
			return err
		}
		if i == 0 {
			break
		}
		below := s.layers[i-1]
		ofInputs := product{m: n, n: l.in, k: l.out, a: l.delta, b: float32At(weights, l.w), c: below.delta}
		if err := s.gemm(ofInputs); err != nil {
			return err
		}
		if err := s.launch(reluBack, eachRow(n, l.in), num(l.in), ptr(below.act), ptr(below.delta)); err != nil {
			return err
		}
	}
	return nil
}

// applyMasks fills view and mask for the step of an epoch's parameters.
func (s *session) applyMasks(epoch uint64) error {
	for i, l := range s.layers {
		n := l.in * l.out
		// A thread draws the four words of one Philox call.
		err := s.launch(masked, elements((n+3)/4), ptr(epoch), num(i), num(n),
			ptr(float32At(s.params, l.w)), ptr(float32At(s.view, l.w)), ptr(s.mask+uint64(l.w)))
		if err != nil {
			return err
		}
	}
	return nil
}

// logits is where the last layer's outputs are, deltas the gradient with respect to them.
func (s *session) logits() uint64 { return s.layers[len(s.layers)-1].act }
func (s *session) deltas() uint64 { return s.layers[len(s.layers)-1].delta }
