package stage

import (
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/inforce"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Version is what every stage knows about a model version.
type Version struct {
	Model, Name string
	K           int
	Shape       acc.Config // configuration of every set that shards send
	Shadow      bool       // a head that is tried beside the version that serves
	Silent      string     // while it has no predictions what inhibits its alerts: record.NoPredictions, since when
	Calibrators []*InForce // ordered by effective time, oldest first
	Decision    Decision   // the latest refit decision
}

// Decision is a decision about the calibrators of a version.
type Decision struct {
	At       int64 // end of the label pane of the decision
	Revision int   // latest revision published by then
	Published[record.Calibrator]
}

// InForce is a published calibrator and the event time from which it is in force. If its share is above 0, it is a
// canary.
type InForce struct {
	Revision int
	From     int64
	Share    float64 // share of the ids that it serves; 0 = all
	Until    int64   // end of a canary; 0 = it has not ended
	Cal      calibrator.Calibrator
	Encoded  []byte
	Reason   string
}

// Serves reports whether f applies to a row, given its event time and the hash of its id. It does not consider other
// calibrators.
func (f *InForce) Serves(ts int64, id [16]byte) bool {
	return inforce.Period{From: f.From, Share: f.Share, Until: f.Until}.Serves(ts, id)
}

// At returns the calibrator for a row, given its event time and the hash of its id; nil = the identity.
func (v *Version) At(ts int64, id [16]byte) *InForce {
	for i := len(v.Calibrators) - 1; i >= 0; i-- {
		if v.Calibrators[i].Serves(ts, id) {
			return v.Calibrators[i]
		}
	}
	return nil
}

// ForgetBefore drops calibrators that no row needs any more. All rows before t have come. Canaries that ended by then
// are dropped too.
func (v *Version) ForgetBefore(t int64) {
	v.Calibrators = slices.DeleteFunc(v.Calibrators, func(f *InForce) bool {
		return f.Share > 0 && f.Until != 0 &&
			f.Until <= t
	})
	for i := 1; i < len(v.Calibrators); i++ {
		if f := v.Calibrators[i]; f.Share == 0 && f.From <= t {
			v.Calibrators, i = v.Calibrators[i:], 0
		}
	}
}

// Newest returns the newest calibrator that serves all ids; nil = the identity.
func (v *Version) Newest() *InForce {
	for i := len(v.Calibrators) - 1; i >= 0; i-- {
		if v.Calibrators[i].Share == 0 {
			return v.Calibrators[i]
		}
	}
	return nil
}

// InForceRevision returns the revision of the newest calibrator that serves all ids; 0 = the identity.
func (v *Version) InForceRevision() int {
	if f := v.Newest(); f != nil {
		return f.Revision
	}
	return 0
}

// Append appends the calibrators in force to a checkpoint.
func (f *InForce) Append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(f.Revision))
	dst = binenc.AppendVarint(dst, f.From)
	dst = binenc.AppendString(dst, f.Reason)
	dst = binenc.AppendBytes(dst, f.Encoded)
	return binenc.AppendVarint(binenc.AppendFloat64(dst, f.Share), f.Until)
}

// Restore reads what Append wrote.
func (f *InForce) Restore(r *binenc.Reader) error {
	f.Revision, f.From, f.Reason = int(r.Int("revision", 0, 1<<40)), r.Varint(), r.String(binenc.MaxName)
	f.Encoded = slices.Clone(r.Bytes(binenc.MaxBytes))
	f.Share, f.Until = r.Float64(), r.Varint()
	if err := r.Err(); err != nil {
		return err
	}
	var err error
	f.Cal, err = calibrator.Decode(f.Encoded)
	return err
}
