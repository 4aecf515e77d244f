package recipe

import (
	"math"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/philox"
)

// mixup draws partners and shares for an epoch: a second shuffle of the rows, and λ ~ Beta(α, α) for each mini-batch.
// Reference: Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018.
func (c Config) mixup(epoch int, rows []int32, batch int) *backend.Mix {
	src := philox.Source{Stream: philox.Stream{Seed: c.Seed, Purpose: philox.Mixup, A: uint32(epoch)}}
	m := &backend.Mix{Partner: append([]int32(nil), rows...), Lambda: make([]float32, data.Batches(len(rows), batch))}
	src.Shuffle(m.Partner)
	for i := range m.Lambda {
		m.Lambda[i] = float32(symmetricBeta(&src, c.Mixup))
	}
	return m
}

// symmetricBeta draws from Beta(α, α), 0 < α ≤ 1, by Jöhnk's rejection; in logs, since u^(1/α) underflows.
func symmetricBeta(src *philox.Source, alpha float64) float64 {
	for {
		x, y := math.Log(src.Float64())/alpha, math.Log(src.Float64())/alpha
		m := max(x, y)
		// u^(1/α) + v^(1/α) ≤ 1
		if sum := m + math.Log(math.Exp(x-m)+math.Exp(y-m)); sum <= 0 {
			return math.Exp(x - sum)
		}
	}
}
