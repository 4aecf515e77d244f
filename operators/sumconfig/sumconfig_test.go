package sumconfig

import (
	"errors"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// TestCheck: what was changed is named by its key, with both values, and nothing else is.
func TestCheck(t *testing.T) {
	was := acc.Config{K: 3, Bins: 15, SoftBins: 15, SoftTemperature: .01, SampleRows: 1024, SampleBytes: 1 << 18}
	if err := Check(was, was); err != nil {
		t.Error(err)
	}
	is := was
	is.SampleRows, is.SampleBytes = 512, 1<<20
	if err := Check(was, is); err != nil {
		t.Errorf("other samples: %v", err)
	}
	is.Bins, is.SampleSeed = 10, 3
	err := Check(was, is)
	want := "stats.bins was 15 and is 10, the seed of samples was 0 and is 3: set back"
	if !errors.Is(err, pipeline.ErrSettings) || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "soft") {
		t.Errorf("error %v, want %q in it", err, want)
	}
}

// TestRead: what is read is what was appended, and nothing is left over.
func TestRead(t *testing.T) {
	was := acc.Config{Bins: 15, SoftBins: 12, SoftTemperature: .01, SampleRows: 1024, SampleBytes: 1 << 18,
		SampleSeed: 7}
	r := binenc.NewReader(Append(nil, was))
	if is := Read(&r); is != was || r.Close() != nil {
		t.Errorf("read %+v, %v, want %+v", is, r.Err(), was)
	}
}
