package inforce

import "github.com/plumbline/plumbline/arrowio"

// Period is the part of the stream that one published calibrator serves.
type Period struct {
	Revision int
	From     int64   // event time, ns
	Share    float64 // of the ids that a canary serves; 0 = all
	Until    int64   // event time at which a canary ends, ns; 0 = not yet
}

// Serves reports whether a row with event time ts and the hash of its id is within p. A later period may replace it.
func (p Period) Serves(ts int64, id arrowio.ID) bool {
	return p.From <= ts && (p.Share == 0 || (p.Until == 0 || ts < p.Until) && arrowio.InShare(id, p.Share))
}
