package digits

import (
	"math"
	"math/rand/v2"
)

// Hidden is the width of the hidden layer, whose output is the features of a row.
const Hidden = 32

// Training constants: long enough for about 95 % on the other half, short enough that the network is not sure of
// everything. See TestNetwork for what they give.
const (
	epochs    = 100
	batchSize = 16
	rate      = 0.1
	decay     = 1e-4 // of the weights, per step and unit rate
)

// Network is a multi-layer perceptron 64→32→10 with ReLU:
//
//	h = max(0, W1·x + b1),  z = W2·h + b2
//
// Immutable after Train, so safe for concurrent use.
type Network struct {
	w1 [Hidden][Pixels]float64
	b1 [Hidden]float64
	w2 [Classes][Hidden]float64
	b2 [Classes]float64
}

// Train fits a network to s by mini-batch gradient descent on the mean cross-entropy, with the stream's own Augment
// on the images. It takes about half a second on one core. Equal seeds give equal networks.
func Train(s Set, seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, streamTrain))
	n := newNetwork(rng)
	var grad Network
	for epoch := range epochs {
		step := rate * 0.5 * (1 + math.Cos(math.Pi*float64(epoch)/epochs))
		order := rng.Perm(len(s.Images))
		for len(order) > 0 {
			batch := order[:min(batchSize, len(order))]
			order = order[len(batch):]
			grad = Network{}
			for _, i := range batch {
				img := Augment.Apply(&s.Images[i], rng)
				n.backward(&grad, &img, s.Labels[i])
			}
			n.descend(&grad, step, float64(len(batch)))
		}
	}
	return n
}

// newNetwork draws He's initial weights: normal with variance 2/fan-in.
func newNetwork(rng *rand.Rand) *Network {
	n := new(Network)
	for j := range n.w1 {
		for i := range n.w1[j] {
			n.w1[j][i] = rng.NormFloat64() * math.Sqrt(2./Pixels)
		}
	}
	for k := range n.w2 {
		for j := range n.w2[k] {
			n.w2[k][j] = rng.NormFloat64() * math.Sqrt(2./Hidden)
		}
	}
	return n
}

// Forward returns the hidden layer's output and the logits of one image.
func (n *Network) Forward(img *Image) (features [Hidden]float64, logits [Classes]float64) {
	for j := range features {
		features[j] = max(0, dot(n.w1[j][:], img[:])+n.b1[j])
	}
	for k := range logits {
		logits[k] = dot(n.w2[k][:], features[:]) + n.b2[k]
	}
	return features, logits
}

// dot rounds every product before it is added (the conversion forbids fusing the two), so that machines with and
// without a fused multiply-add agree.
func dot(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		s += float64(v * b[i])
	}
	return s
}

// backward adds the gradient of the cross-entropy of one image with class y to grad.
func (n *Network) backward(grad *Network, img *Image, y int32) {
	h, z := n.Forward(img)
	dz := softmax(z)
	dz[y]--
	var dh [Hidden]float64
	for k, d := range dz {
		grad.b2[k] += d
		for j := range h {
			grad.w2[k][j] += float64(d * h[j])
			dh[j] += float64(d * n.w2[k][j])
		}
	}
	for j, d := range dh {
		if h[j] == 0 {
			continue
		}
		grad.b1[j] += d
		for i, x := range img {
			grad.w1[j][i] += float64(d * x)
		}
	}
}

// descend takes one step against the mean of a batch's summed gradient.
func (n *Network) descend(grad *Network, step, batch float64) {
	for j := range n.w1 {
		n.b1[j] -= float64(step * grad.b1[j] / batch)
		for i := range n.w1[j] {
			n.w1[j][i] -= float64(step * (grad.w1[j][i]/batch + float64(decay*n.w1[j][i])))
		}
	}
	for k := range n.w2 {
		n.b2[k] -= float64(step * grad.b2[k] / batch)
		for j := range n.w2[k] {
			n.w2[k][j] -= float64(step * (grad.w2[k][j]/batch + float64(decay*n.w2[k][j])))
		}
	}
}

func softmax(z [Classes]float64) [Classes]float64 {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	var sum float64
	for k, v := range z {
		z[k] = math.Exp(v - top)
		sum += z[k]
	}
	for k := range z {
		z[k] /= sum
	}
	return z
}
