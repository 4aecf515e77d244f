package join

import (
	"fmt"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// predictions lets the good rows of a batch wait, or join a label that came before. It returns the batch without
// duplicates.
func (j *Operator) predictions(b *arrowio.Batch) (*arrowio.Batch, error) {
	var n, inline, unlabelled int64
	var reject []string
	for i := 0; i < b.N; i++ {
		if !b.Good(i) {
			continue
		}
		labelled := b.Label != nil && b.Label[i] >= 0
		if b.IDs == nil || labelled && j.cfg.Remember == 0 {
			if labelled {
				inline++
			} else {
				unlabelled++
			}
			continue
		}
		look(&j.w, b, i)
		if labelled {
			added, err := rememberInline(&j.w, b, i)
			if err != nil {
				return b, err
			}
			if inline += int64(added); added > 0 {
				i += added - 1
				continue
			}
		} else if added := awaitRun(j, b, i); added > 0 {
			n += int64(added)
			i += added - 1
			continue
		}
		repeat, err := j.prediction(b, i, labelled)
		if err == nil {
			err = j.settle()
		}
		if err != nil {
			return b, err
		}
		switch {
		case repeat:
			j.counts.Add(pipeline.CountDuplicates, 1)
			if reject == nil {
				reject = b.Rejecting()
			}
			reject[i] = "duplicate"
		case labelled:
			inline++
		default:
			n++
		}
	}
	j.counts.Add(pipeline.CountPredictions, n+inline+unlabelled)
	j.counts.Add(pipeline.CountInline, inline)
	j.counts.Add(pipeline.CountUnlabelled, unlabelled)
	if reject != nil {
		b = b.WithReject(reject)
	}
	return b, nil
}

// prediction takes row i, which has an id; repeat says that it has come before.
func (j *Operator) prediction(b *arrowio.Batch, i int, labelled bool) (repeat bool, err error) {
	key, _ := b.ModelOf(i)
	if !labelled && j.w.onDisk() == 0 { // nearly all are of a new id
		if e := addFirst(&j.w.memory, b.IDs[i], j.w.hashes[j.w.at(i)]); e >= 0 {
			j.w.setPrediction(e, b, i, &key)
			return false, nil
		}
	}
	if err := j.w.recall(b.IDs[i]); err != nil {
		return false, err
	}
	known, rival, others := j.w.hasPrediction(&b.IDs[i], &key)
	if rival {
		j.w.sharedAt = max(j.w.sharedAt, b.TS[i])
	}
	switch {
	case known:
		return true, nil
	case labelled:
		return false, j.inline(&b.IDs[i], b.TS[i], key, others)
	}
	return false, j.await(b, i, &key, others)
}

// await lets a prediction wait for its label, or joins it with one that came before.
func (j *Operator) await(b *arrowio.Batch, i int, key *arrowio.ModelKey, others int) error {
	if others >= maxOfID {
		j.counts.Add(pipeline.CountEvicted, 1)
		return nil
	}
	e := j.w.add(b.IDs[i], others == 0)
	j.w.setPrediction(e, b, i, key)
	if others == 0 {
		return nil
	}
	return j.matchLabel(e)
}

// inline remembers a prediction that came with its label, as if the two had joined. Fitting labels that came before it
// count as corrections, as later ones will. If its id has more than maxOfID other entries, it is not remembered.
func (j *Operator) inline(id *arrowio.ID, ts pipeline.Time, key arrowio.ModelKey, others int) error {
	for l := j.w.first(id); l >= 0; {
		next := j.w.after(l)
		if lab := &j.w.entries[l]; lab.label >= 0 && (!lab.named || labelFits(j.w.models[lab.model], key)) &&
			j.cfg.inTime(ts, lab.ts) {
			j.serve(l, true)
			if j.w.exact(lab) {
				j.w.remove(l)
			}
		}
		l = next
	}
	if others >= maxOfID {
		return nil
	}
	return j.w.remember(id, ts, key)
}

// matchLabel joins a new prediction with the earliest label that waits for it, as if the prediction had come first.
func (j *Operator) matchLabel(e int32) error {
	p := &j.w.entries[e]
	j.match = j.match[:0]
	for l := j.w.first(&p.id); l >= 0; l = j.w.after(l) {
		lab := &j.w.entries[l]
		if lab.label >= 0 && (!lab.named || labelFits(j.w.models[lab.model], j.w.models[p.model])) &&
			j.cfg.inTime(p.ts, lab.ts) {
			j.match = append(j.match, l)
		}
	}
	// The chain has the newest first; one that is out of range leaves the prediction to the next.
	joined := false
	for i := len(j.match) - 1; i >= 0; i-- {
		l := j.match[i]
		lab := j.w.entries[l]
		if joined && j.cfg.Remember == 0 {
			break
		}
		j.serve(l, joined)
		if !joined && lab.label < j.w.entries[e].k {
			joined = true
			if err := j.pair(e, lab.ts, lab.label); err != nil {
				return err
			}
		} else if !joined {
			j.rejectEarlier(lab.label, int(j.w.entries[e].k))
		}
		// A label that names no version may serve further versions' predictions of this id; it leaves by age.
		if j.w.exact(&lab) {
			j.w.remove(l)
		}
	}
	return nil
}

// serve counts what became of a waiting label, once: the first time that it joins or corrects.
func (j *Operator) serve(l int32, correction bool) {
	if j.w.entries[l].used {
		return
	}
	j.w.serve(l)
	if correction {
		j.corrections++
	} else {
		j.met++
	}
}

// rejectEarlier rejects a label that waited; its record is gone, so the dead letter names no row.
func (j *Operator) rejectEarlier(label int32, k int) {
	j.counts.AddReason(pipeline.CountRejected, arrowio.LabelRange, 1)
	j.counts.Add(pipeline.CountRejectedJoins, 1)
	j.out.Reject(-1, arrowio.LabelRange, fmt.Sprintf("an earlier label: %d; allowed are 0 to %d", label, k-1))
}
