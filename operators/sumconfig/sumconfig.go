package sumconfig

import (
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Check refuses statistics of another configuration (pipeline.ErrSettings), and names the keys that were changed. The
// sizes of samples may differ: they hold for what is new.
func Check(was, is acc.Config) error {
	was.SampleRows, was.SampleBytes = is.SampleRows, is.SampleBytes
	if was == is {
		return nil
	}
	var changed []string
	for _, key := range []struct {
		name    string
		was, is any
	}{
		{"the number of classes", was.K, is.K}, {"stats.bins", was.Bins, is.Bins},
		{"stats.soft_bins", was.SoftBins, is.SoftBins},
		{"stats.soft_temperature", was.SoftTemperature, is.SoftTemperature},
		{"the seed of samples", was.SampleSeed, is.SampleSeed},
	} {
		if key.was != key.is {
			changed = append(changed, fmt.Sprintf("%s was %v and is %v", key.name, key.was, key.is))
		}
	}
	return fmt.Errorf("the statistics were %w: %s: set back what was changed", pipeline.ErrSettings,
		strings.Join(changed, ", "))
}

// Append appends a configuration as its keys say it, for any number of classes. acc.Config.Append appends the shape
// of the sums of one number, where the bound on bytes has become one on rows.
func Append(dst []byte, c acc.Config) []byte {
	dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(c.Bins)), uint64(c.SoftBins))
	dst = binenc.AppendFloat64(dst, c.SoftTemperature)
	dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(c.SampleRows)), uint64(c.SampleBytes))
	return binenc.AppendFixed64(dst, c.SampleSeed)
}

// Read reads what Append wrote; errors are those of r.
func Read(r *binenc.Reader) acc.Config {
	return acc.Config{Bins: int(r.Uvarint()), SoftBins: int(r.Uvarint()), SoftTemperature: r.Float64(),
		SampleRows: int(r.Uvarint()), SampleBytes: int(r.Uvarint()), SampleSeed: r.Fixed64()}
}
