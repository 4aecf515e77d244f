// Package loss has the losses that heads are fine-tuned with: values, and gradients with respect to logits.
//
// A loss is written as text: terms with options, weighted and added.
//
//	ce
//	focal{gamma:3} + 0.5*savuc{kappa:0.5,temperature:1}
//	au{csf:margin,kappa:0.5,nu:0.1}
//	classwise{alpha:1,beta:1.5}(focal)
//
// [Parse] makes a [Loss] of it, whose Eval takes the logits of a batch, n×K, and gives the value and the gradient:
//
//	l, err := loss.Parse("ce + 0.1*mdca")
//	v, err := l.Eval32(z, loss.Batch{N: n, K: k, Y: y}, grad)
//
// Values are in nats where they are of a logarithm. Logits are read as float32 or float64, everything between is
// float64, and the gradient is rounded once. All values and gradients are finite for finite logits up to 80 in size,
// with ties, identical rows, a single row and absent classes. Of ties in a maximum the lowest index counts as the
// maximum and takes the gradient. A weight or a threshold that is said to be detached is a constant for the gradient.
//
// The cost is O(nK) a term, with these exceptions: aurc, au and mmce sort, O(n log n + nK); au also evaluates its CDF
// from bins, O(n·bins); sbece is O(n(K + bins)); cpc O(nK²); kde O(n²K).
//
// Package recipe names losses, backends evaluate them on mini-batches. The package must not know heads, parameters or
// where rows are from.
//
// Which of the literature's variants is computed stands at each term's type and in docs/math.md.
package loss
