package cuda

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/philox"
)

const (
	epochBytes = int(unsafe.Sizeof(epochParams{}))
	planBytes  = int(unsafe.Sizeof(lossPlan{}))
)

// buffer is device memory that grows.
type buffer struct {
	at    uint64
	bytes int
}

// lists are what an epoch says of each row or step.
type lists struct{ rows, partners, lambda buffer }

// fill puts content into a buffer. A buffer that moves makes recorded launches useless.
func (s *session) fill(b *buffer, content []byte) error {
	if len(content) > b.bytes {
		if err := s.dropGraphs(); err != nil {
			return err
		}
		if err := s.release(b.at); err != nil {
			return err
		}
		*b = buffer{}
		at, err := s.alloc("an epoch's rows", len(content))
		if err != nil {
			return err
		}
		*b = buffer{at, len(content)}
	}
	return s.put(b.at, content)
}

// Epoch implements [backend.Session].
func (s *session) Epoch(e backend.EpochPlan) (backend.EpochResult, error) {
	if err := e.Check(s.p); err != nil {
		return backend.EpochResult{}, err
	}
	r := backend.EpochResult{Rows: len(e.Rows)}
	began := time.Now()
	err := s.thread.do(func() (err error) {
		r.Loss, err = s.runEpoch(e)
		return err
	})
	s.timing.note(r, time.Since(began))
	return r, err
}

func (s *session) runEpoch(e backend.EpochPlan) (float64, error) {
	if err := s.prepare(e); err != nil {
		return 0, err
	}
	var hostLoss float64
	for b := range data.Batches(len(e.Rows), e.Batch) {
		if err := e.Stopped(); err != nil {
			return 0, errors.Join(err, s.sync())
		}
		v, err := s.runBatch(e, b)
		if err != nil {
			return 0, fmt.Errorf("mini-batch %d: %w", b, err)
		}
		hostLoss += v
	}
	var after [1]epochParams
	if err := s.get(bytesOf(after[:]), s.epoch); err != nil {
		return 0, err
	}
	if after[0].Bad != 0 {
		return 0, fmt.Errorf("epoch: a logit is not finite: %w", backend.ErrDiverged)
	}
	return (hostLoss + after[0].Loss) / float64(len(e.Rows)), nil
}

// prepare puts what the steps read on the device.
func (s *session) prepare(e backend.EpochPlan) error {
	p := epochParams{
		Batch:    int32(e.Batch),
		Total:    int32(len(e.Rows)),
		LR:       e.LR,
		Momentum: e.Momentum,
		Decay:    e.WeightDecay,
	}
	if e.Decoupled {
		p.Decoupled = 1
	}
	if e.Nesterov {
		p.Nesterov = 1
	}
	if e.Mask != nil {
		p.Seed, p.Threshold, p.First = e.Mask.Seed, philox.Threshold(e.Mask.Keep), e.Mask.FirstStep
	}
	if err := s.put(s.epoch, bytesOf([]epochParams{p})); err != nil {
		return err
	}
	if err := s.fill(&s.lists.rows, bytesOf(e.Rows)); err != nil {
		return err
	}
	if e.Mix == nil {
		return nil
	}
	if err := s.fill(&s.lists.partners, bytesOf(e.Mix.Partner)); err != nil {
		return err
	}
	return s.fill(&s.lists.lambda, bytesOf(e.Mix.Lambda))
}

// runBatch puts one step into the stream. It returns n times its loss where the host computes that, else 0.
func (s *session) runBatch(e backend.EpochPlan, b int) (float64, error) {
	from := b * e.Batch
	n := min(e.Batch, len(e.Rows)-from)
	t := step{
		loss:     s.losses[e.Loss],
		n:        n,
		mask:     e.Mask != nil,
		restrict: e.Mask != nil && e.Mask.Restrict,
		in:       batchOf{source: s.sources[0], steps: true, mix: e.Mix != nil},
	}
	if t.in.source.slab == 0 {
		t.in.slot = &s.slots[b%2]
		var partners []int32
		if e.Mix != nil {
			partners = e.Mix.Partner[from : from+n]
		}
		if err := s.send(t.in.slot, t.in.source, e.Rows[from:from+n], partners); err != nil {
			return 0, err
		}
	}
	if !t.loss.fused {
		return s.hostStep(t, e, b)
	}
	key := graphKey{loss: e.Loss, n: n, slot: b % 2, mask: t.mask, restrict: t.restrict, mix: t.in.mix}
	if err := s.record(t, key); err != nil {
		return 0, err
	}
	return 0, s.used(t.in.slot)
}

// step is what the launches of one mini-batch depend on.
type step struct {
	loss           *compiled
	n              int
	mask, restrict bool
	in             batchOf
}

// head is a step up to the logits; it returns which weights they are of.
func (s *session) head(t step) (uint64, error) {
	if err := s.input(t.in, t.n); err != nil {
		return 0, err
	}
	partners := uint64(0)
	if t.in.mix {
		partners = s.lists.partners.at
	}
	err := s.launch(labels, elements(t.n), ptr(s.epoch), num(t.n), ptr(s.lists.rows.at), ptr(partners),
		ptr(s.sources[0].labels), ptr(s.right), ptr(s.seen), ptr(s.y), ptr(s.y2), ptr(s.history))
	if err != nil {
		return 0, err
	}
	weights := s.params
	if t.mask {
		if err := s.applyMasks(s.epoch); err != nil {
			return 0, err
		}
		weights = s.view
	}
	return weights, s.forward(weights, t.n)
}

// tail is the rest of a step, behind the gradient with respect to the logits.
func (s *session) tail(t step, weights uint64) error {
	if err := s.backward(weights, t.n); err != nil {
		return err
	}
	mask := uint64(0)
	if t.restrict {
		mask = s.mask
	}
	return s.launch(update, elements(s.size),
		ptr(s.epoch), num(s.size), ptr(s.params), ptr(s.grads), ptr(s.velocity), ptr(mask))
}

// fused is a whole step.
func (s *session) fused(t step) error {
	weights, err := s.head(t)
	if err != nil {
		return err
	}
	if err := s.weigh(t); err != nil {
		return err
	}
	if err := s.rowLosses(t); err != nil {
		return err
	}
	total := s.epoch + uint64(unsafe.Offsetof(epochParams{}.Loss))
	if err := s.launch(sums, oneBlock, num(t.n), num(1), ptr(s.values), ptr(total)); err != nil {
		return err
	}
	return s.tail(t, weights)
}

// weigh computes the rows' weights of au.
func (s *session) weigh(t step) error {
	if !t.loss.au {
		return nil
	}
	k := s.p.Head.K()
	err := s.launch(auScores, eachRow(t.n, k), ptr(s.epoch), ptr(t.loss.at), num(k), ptr(s.logits()), ptr(s.scores))
	if err != nil {
		return err
	}
	err = s.launch(auRanks, eachRow(t.n, t.n), ptr(t.loss.at), num(t.n), ptr(s.scores), ptr(s.around))
	if err != nil {
		return err
	}
	rows, bins, counts := t.n, int(t.loss.plan.Bins), s.counts
	if len(s.p.CDF) > 0 {
		rows, bins, counts = 0, len(s.p.CDF), s.cdf
	}
	err = s.launch(auCounts, oneBlock, num(rows), num(bins), ptr(s.scores), ptr(counts), ptr(s.around))
	if err != nil {
		return err
	}
	err = s.launch(auWeights, eachRow(t.n, bins), ptr(t.loss.at), num(t.n), num(bins), ptr(s.scores), ptr(counts),
		ptr(s.around), ptr(s.beta))
	if err != nil || t.loss.plan.Normalise == 0 {
		return err
	}
	return s.launch(auNormalise, oneBlock, num(t.n), ptr(s.beta))
}

// rowLosses computes values and gradients: once, or with mixup once for each label.
func (s *session) rowLosses(t step) error {
	k, share := s.p.Head.K(), uint64(0)
	if t.in.mix {
		share = s.lists.lambda.at
	}
	run := func(y uint64, second bool, right, seen uint64) error {
		return s.launch(rowLosses, eachRow(t.n, k), ptr(s.epoch), ptr(t.loss.at), num(t.n), num(k), ptr(s.logits()),
			ptr(y), ptr(s.beta), ptr(share), boolean(second), boolean(second), ptr(s.lists.rows.at),
			ptr(right), ptr(seen), ptr(s.values), ptr(s.deltas()))
	}
	if err := run(s.y, false, s.right, s.seen); err != nil || !t.in.mix {
		return err
	}
	return run(s.y2, true, 0, 0)
}
