package calibrator_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestFitsDoNotDependOnProcessors compares the bytes of every fit on one processor and on several, and a repeat.
func TestFitsDoNotDependOnProcessors(t *testing.T) {
	z, y := synthetic(2100, 20, 2, 7)
	narrow := make([]float32, 7*len(z)) // so many that they go through the block kernel
	labels := make([]int32, 0, 7*len(y))
	for i := range 7 {
		for j, v := range z {
			narrow[i*len(z)+j] = float32(v)
		}
		labels = append(labels, y...)
	}
	fit := func(method string) []byte {
		c, _, err := calibrator.Fit(method, calibrator.NewData(z, 20, y, nil), calibrator.Options{})
		if method == "temperature" {
			c, _, err = calibrator.Fit(method, calibrator.NewData(narrow, 20, labels, nil), calibrator.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := calibrator.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, m := range calibrator.Methods() {
		method := m.Name
		runtime.GOMAXPROCS(1)
		want := fit(method)
		runtime.GOMAXPROCS(4)
		for range 2 {
			if got := fit(method); !bytes.Equal(got, want) {
				t.Errorf("%s: got %.200s, want %.200s", method, got, want)
			}
		}
	}
}
