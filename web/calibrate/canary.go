package calibrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
)

// scores are the rows of a request: k numbers each, row after row.
type scores[T float32 | float64] struct {
	z             []T
	k             int
	probabilities bool         // not logits
	ids           []arrowio.ID // of the rows; none where the request has none
}

// apply calibrates rows into dst, which may be their slice: by the calibrator in force, and the rows whose ids are in
// the canary's share by the canary, as the calibrated stream does. It returns how many those are.
func apply[T float32 | float64](f *InForce, dst []T, s scores[T]) (canary int, err error) {
	k := s.k
	if f.classes > 0 && k != f.classes { // many calibrators fit any K
		return 0, fmt.Errorf("rows of %d classes; allowed are the %d of model %q, version %q", k, f.classes, f.Model,
			f.Version)
	}
	var rows []int
	var own []T
	for i, id := range s.ids {
		if f.Canary != nil && arrowio.InShare(id, f.Share) {
			rows = append(rows, i)
			own = append(own, s.z[i*k:(i+1)*k]...)
		}
	}
	all, err := f.serving()
	if err != nil {
		return 0, err
	}
	if err := calibrator.ApplyRows(all, dst, s.z, k, s.probabilities); err != nil || len(rows) == 0 {
		return 0, err
	}
	if err := calibrator.ApplyRows(f.Canary, own, own, k, s.probabilities); err != nil {
		return 0, err
	}
	for n, i := range rows {
		copy(dst[i*k:(i+1)*k], own[n*k:])
	}
	return len(rows), nil
}

// idsOf hashes the ids of n rows, none where the list is absent.
func idsOf(list []json.RawMessage, n int) ([]arrowio.ID, error) {
	if list == nil {
		return nil, nil
	}
	if len(list) != n {
		return nil, fmt.Errorf("ids: %d for %d rows", len(list), n)
	}
	out := make([]arrowio.ID, n)
	for i, raw := range list {
		var text string
		if bytes.HasPrefix(raw, []byte(`"`)) && json.Unmarshal(raw, &text) == nil {
			out[i] = arrowio.HashID(text)
			continue
		}
		number, err := strconv.ParseUint(string(raw), 10, 64)
		if signed, serr := strconv.ParseInt(string(raw), 10, 64); err != nil && serr == nil {
			number, err = uint64(signed), nil // as an int64 column has it
		}
		if err != nil {
			return nil, fmt.Errorf("ids: row %d: %.40s, must be a string or a whole number of 64 bits", i, raw)
		}
		out[i] = arrowio.HashIntID(number)
	}
	return out, nil
}
