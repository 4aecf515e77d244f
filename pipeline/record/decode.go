package record

import (
	"encoding/json"
	"fmt"
)

// Decode decodes a record as it comes from a topic.
func Decode[T any](value []byte) (*T, error) {
	r := new(T)
	if err := json.Unmarshal(value, r); err != nil {
		return nil, fmt.Errorf("%T: %w", r, err)
	}
	return r, nil
}

// DecodeCalibrators decodes a record of the calibrators topic: a *Calibrator or a *TopCorrection.
func DecodeCalibrators(value []byte) (any, error) {
	c, err := Decode[Calibrator](value)
	if err != nil {
		return nil, err
	}
	if c.Stage == StageTop {
		return Decode[TopCorrection](value)
	}
	return c, nil
}

// DecodeHeads decodes a record of the heads topic: a *Head, *Job, *Verdict or *Order. It is nil for a tombstone, and
// for a kind that is not known.
func DecodeHeads(value []byte) (any, error) {
	if len(value) == 0 {
		return nil, nil
	}
	var of struct{ Kind, ID string }
	if err := json.Unmarshal(value, &of); err != nil {
		return nil, fmt.Errorf("heads record: %w", err)
	}
	var rec any
	switch of.Kind {
	case HeadTrained:
		rec = new(Head)
	case HeadJob:
		rec = new(Job)
	case HeadVerdict:
		rec = new(Verdict)
	case HeadOrder, HeadCancel:
		rec = new(Order)
	default:
		return nil, nil
	}
	if err := json.Unmarshal(value, rec); err != nil {
		return nil, fmt.Errorf("%s %s: %w", of.Kind, of.ID, err)
	}
	return rec, nil
}
