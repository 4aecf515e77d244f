package batchtest

import (
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// Temperature encodes a calibrator.
func Temperature(t testing.TB, temperature float64) []byte {
	t.Helper()
	c, err := calibrator.NewTemperature(temperature)
	if err != nil {
		t.Fatal(err)
	}
	b, err := calibrator.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
