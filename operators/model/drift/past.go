package drift

import (
	"math"

	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// pastErrors says how wrong the estimates have been: the labelled rows after the reference come in blocks, of which
// every one is estimated as if it had no labels, and compared with them.
type pastErrors struct {
	block  []blockBin // by bin of the confidence; nil before the first row
	rows   float64
	blocks []unlabelled.Past // the latest ones, oldest first
}

// blockBin are the rows of a bin of the confidence: right and wrong ones, and the sum of their confidences.
type blockBin struct{ right, wrong, sumC float64 }

const (
	// blocksKept is how many blocks count; 20 is what a 90 % range needs to leave out the worst of them.
	blocksKept = 20
	// A block has a tenth of the reference's rows, and at least leastBlock.
	blockShare = 10
	leastBlock = 100
)

// add takes the labelled rows of a pane, but for those that were predicted under another map of confidences.
func (e *pastErrors) add(d *State, in *stage.Pane) error {
	for _, c := range in.Cells {
		if c.Set.LabelledRows() == 0 || c.PredictionPane*d.stage.env.Pane < d.calibrated().since {
			continue
		}
		wrong, right, err := c.Set.Labelled.MSP.BinsByOutcome(stage.ScoreBins)
		if err != nil {
			return err
		}
		if e.block == nil {
			e.block = make([]blockBin, stage.ScoreBins)
		}
		for j := range wrong {
			b := &e.block[j]
			for _, x := range []metric.Bin{wrong[j], right[j]} {
				if x.N > 0 {
					b.sumC += x.Conf() * float64(x.N)
					e.rows += float64(x.N)
				}
			}
			b.wrong, b.right = b.wrong+float64(wrong[j].N), b.right+float64(right[j].N)
		}
	}
	if e.rows >= float64(max(leastBlock, d.stage.cfg.ReferenceRows/blockShare)) {
		e.close(d)
	}
	return nil
}

// close compares the block with its estimates.
func (e *pastErrors) close(d *State) {
	var cells []metric.Bin
	var right float64
	now := make([]float64, stage.ScoreBins)
	for j, b := range e.block {
		if now[j] = b.right + b.wrong; now[j] > 0 {
			cells = append(cells, metric.Bin{N: int64(now[j]), W: now[j], SumC: b.sumC})
			right += b.right
		}
	}
	if est := d.estimates(cells, now); len(est) > 1 {
		e.blocks = append(e.blocks, unlabelled.PastOf(right, e.rows, est...))
		e.blocks = e.blocks[max(0, len(e.blocks)-blocksKept):]
	}
	e.block, e.rows = nil, 0
}

// estimates returns the estimates that rest on the confidence alone: one, or two once the labelled reference is full
// and tells right from wrong. cells are the rows by confidence, now their numbers by bin.
func (d *State) estimates(cells []metric.Bin, now []float64) []unlabelled.Estimate {
	est := []unlabelled.Estimate{unlabelled.ConfidenceBased(cells, d.Confidence, d.stage.env.Bins)}
	if d.ref.labelledFull(d.stage.cfg) {
		if e, err := unlabelled.CorrectnessShift(d.ref.outcome[1], d.ref.outcome[0], now); err == nil {
			est = append(est, e)
		}
	}
	return est
}

func (e *pastErrors) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(e.block)))
	for _, b := range e.block {
		dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(b.right)), uint64(b.wrong))
		dst = binenc.AppendFloat64(dst, b.sumC)
	}
	if len(e.blocks) == 0 {
		return binenc.AppendUvarint(dst, 0)
	}
	dst = binenc.AppendUvarint(dst, uint64(blocksKept+len(e.blocks)))
	for _, p := range e.blocks {
		dst = binenc.AppendUvarint(binenc.AppendFloat64s(dst, p.Excess, p.Miss), uint64(p.Rows))
	}
	return dst
}

// stale reports whether the newest blocks show that the estimates are wrong.
func (e *pastErrors) stale(d *State) bool {
	right, rows, _ := d.Reference()
	return unlabelled.Stale(e.blocks, right, rows)
}

func (e *pastErrors) restore(in *binenc.Reader) {
	*e = pastErrors{}
	n := in.Count(10, stage.ScoreBins)
	if n != 0 && n != stage.ScoreBins {
		in.Failf("block of %d bins, allowed 0 and %d", n, stage.ScoreBins)
	}
	for range n {
		b := blockBin{right: float64(in.Int("right", 0, 1<<53)), wrong: float64(in.Int("wrong", 0, 1<<53)),
			sumC: in.Float64()}
		if !(b.sumC >= 0 && b.sumC <= (b.right+b.wrong)*(1+1e-9)) {
			in.Failf("confidences of %v rows add up to %v", b.right+b.wrong, b.sumC)
		}
		e.block, e.rows = append(e.block, b), e.rows+b.right+b.wrong
	}
	n = int(in.Int("blocks", 0, 2*blocksKept))
	onlyExcess := n <= blocksKept // as it was written once
	if !onlyExcess {
		n -= blocksKept
	}
	for range n {
		p := unlabelled.Past{Excess: in.Float64()}
		if !onlyExcess {
			p.Miss, p.Rows = in.Float64(), float64(in.Int("rows", 0, 1<<53))
		}
		if !(p.Excess >= 0 && p.Excess <= 1) || math.Signbit(p.Excess) || !(p.Miss >= -1 && p.Miss <= 1) {
			in.Failf("estimates were off by %v and %v, allowed 0 to 1 and -1 to 1", p.Excess, p.Miss)
		}
		e.blocks = append(e.blocks, p)
	}
}
