package loss

// margin is margin-based label smoothing (MbLS), the penalty alone:
//
//	λ · 1/(nK) Σ_i Σ_k max(0, max z_i − z_ik − M)
//
// with the gradient through the maximum, as in the released code. With eq15 it is as printed: summed over the classes,
// and the maximum is a constant for the gradient, so the predicted class has none.
// Reference: Liu et al., The Devil is in the Margin, CVPR 2022, Eq. 15.
type margin struct {
	lambda, margin float64
	eq15           bool
}

func (l margin) row(r *rows, i int, w float64, g []float64) float64 {
	share := l.lambda
	if !l.eq15 {
		share /= float64(r.k)
	}
	var sum, over float64
	for k, d := range r.diff(i) {
		if x := -d - l.margin; x > 0 {
			sum += x
			over++
			if g != nil {
				g[k] -= w * share
			}
		}
	}
	if g != nil && !l.eq15 {
		g[r.top[i]] += w * share * over
	}
	return share * sum
}

// acls is adaptive and conditional label smoothing, the penalty alone: with ŷ = argmax z,
//
//	½ · 1/n Σ_i [λ1 max(0, z_ŷ − min z − M)² + λ2 Σ_{k≠ŷ} max(0, z_ŷ − z_k − M)²]
//
// with min z a constant in the first term and z_ŷ in the second, so that the gradient is that of Eq. 12:
// λ1 max(0, z_ŷ − min z − M) at ŷ and −λ2 max(0, z_ŷ − z_k − M) elsewhere (hence half of Eq. 13).
// With released: λ1 max(0, z_ŷ − M)² and λ2/(K − 1) Σ_{k≠ŷ} …, without the half, as its code has it.
// Reference: Park et al., ACLS: Adaptive and Conditional Label Smoothing for Network Calibration, ICCV 2023, Eq. 12-13.
type acls struct {
	lambda1, lambda2, margin float64
	released                 bool
}

func (l acls) row(r *rows, i int, w float64, g []float64) float64 {
	d, top := r.diff(i), int(r.top[i])
	pos, neg, reach := l.lambda1/2, l.lambda2/2, 0.0
	if l.released {
		pos, neg, reach = l.lambda1, l.lambda2/float64(r.k-1), r.max[i]
	} else {
		for _, v := range d {
			reach = max(reach, -v)
		}
	}
	var sum float64
	if x := reach - l.margin; x > 0 {
		sum += pos * x * x
		if g != nil {
			g[top] += w * 2 * pos * x
		}
	}
	for k, v := range d {
		if x := -v - l.margin; k != top && x > 0 {
			sum += neg * x * x
			if g != nil {
				g[k] -= w * 2 * neg * x
			}
		}
	}
	return sum
}
