// Package acc holds the exactly mergeable accumulators of a calibration stream.
//
// A [Set] is one cell of the stream: what is known of one key (model, version, slice) in one pane. Feed it with
// what the row kernel computes, once per prediction (Predict), once per labelled row (Label) and, for the bounded
// sample of rows, Sample. Sets of any panes, partitions and machines are merged, and read:
//
//	s, err := acc.New(acc.Config{K: 10, SampleRows: 64})
//	err = s.Predict(row, 1)
//	err = s.Label(row, p, acc.Truth{Class: y, NLL: nll, Weight: 1, Lag: lag, Served: math.NaN()})
//	err = total.Merge(s)
//	bins, err := total.Labelled.MSP.Bins(15)
//	ece := metric.ECE(bins)
//
// Many rows at a time are several times faster: a [Block] runs the row kernel over them, works out once what every
// set needs of a row, and Set.PredictRows and Set.LabelRows add it, to the same bytes:
//
//	b := acc.NewBlock(10)
//	b.Score(logits, false)                  // n×10 float32, BlockRows at a time
//	for i := range n {
//		err = b.SetRow(i, y[i], 1, lag[i], math.NaN())
//	}
//	err = s.PredictRows(b, rows)            // numbers of rows
//	err = s.LabelRows(b, rows)
//
// The inner loops are those of calib/kernel/fixedpoint: AVX-512, AVX2 or plain Go with the same results, and what
// enters a state uses no function of package math that differs by platform, so that state bytes compare across machines
// as far as the row kernel's outputs do.
//
// All sums are integers, multiples of 2^-32: a row's value is rounded once, to nearest, ties to even, and added
// without rounding. Addition is then commutative and associative, so every order and split of the same rows gives
// the same state, and since the encodings are canonical, the same bytes. A mean is off by at most
// 2^-33 = 1.2e-10.
//
// Encodings are described at each AppendBinary, in the primitives of internal/binenc. "total" is uvarint N,
// varint Σw − N·2^32; a "block" is the uvarint length of an encoding and the encoding.
//
// A row has a weight w, 0 < w < 2^31, 1 unless it was sampled; the sum of the weights of an accumulator stays
// below 2^31. What does not fit is [ErrOverflow], and nothing is changed.
//
// Nothing here is safe for concurrent use.
package acc
