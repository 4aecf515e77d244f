package stats

import (
	"cmp"
	_ "embed"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Declaration is the file with the comments that document the keys.
func (SampleConfig) Declaration() string { return configSource }

// Config is the section stats: accumulators and metrics.
type Config struct {
	// Bins of the reliability diagram and of ECE.
	Bins int `yaml:"bins" default:"15" min:"1" max:"3600"`
	// Numbers of bins of further ECEs.
	ExtraBins []int `yaml:"extra_bins" min:"1" max:"3600"`
	// Soft bins of SB-ECE.
	SoftBins int `yaml:"soft_bins" default:"15" min:"1" max:"1000"`
	// Temperature T of the soft bins.
	SoftTemperature float64 `yaml:"soft_temperature" default:"0.01" above:"0" max:"100"`
	// Width ν of the smoothed confidence CDF.
	CDFNu float64 `yaml:"cdf_nu" default:"0.1" above:"0" max:"10"`
	// Resamples for the null expectation and the interval of ECE.
	Resamples int `yaml:"resamples" default:"200" min:"20" max:"100_000"`
}

// SampleConfig is the section sample: the bounded sample of labelled rows.
type SampleConfig struct {
	// Most rows of one cell (key, label pane, prediction pane).
	RowsPerCell int `yaml:"rows_per_cell" default:"1024" min:"1" max:"1_000_000"`
	// Most bytes of their scores; 0: half of kafka.message_max_bytes.
	BytesPerCell int `yaml:"bytes_per_cell" min:"0" max:"1GiB"`
	// Latest sampled rows that a model task keeps of a model version.
	Rows int `yaml:"rows" default:"8192" min:"1" max:"10_000_000"`
	// Latest sampled rows that it keeps of a slice, if unlabelled.classes is slices; at most as many as rows.
	SliceRows int `yaml:"slice_rows" default:"512" min:"200" max:"10_000_000"`
}

// sampleSeed separates the sample from other uses of the ids' hashes; all processes must have the same.
const sampleSeed = 0x706c756d62

// Accumulators returns the configuration of a cell's sums, which are sent in messages of at most messageMax bytes; K
// is set by model.
func (c Config) Accumulators(s SampleConfig, messageMax int) acc.Config {
	return acc.Config{Bins: c.Bins, SoftBins: c.SoftBins, SoftTemperature: c.SoftTemperature,
		SampleRows: s.RowsPerCell, SampleBytes: cmp.Or(s.BytesPerCell, messageMax/2), SampleSeed: sampleSeed}
}

// divides checks a number of bins.
func divides(r *setting.Report, key string, n int) {
	if n > 0 && n <= acc.GridCells && acc.GridCells%n != 0 {
		r.Fail(key, n, "must divide %d, such as 10, 12, 15, 18, 20, 24, 25, 30", acc.GridCells)
	}
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	divides(r, "bins", c.Bins)
	seen := map[int]bool{c.Bins: true}
	for i, n := range c.ExtraBins {
		key := setting.Item("extra_bins", i)
		divides(r, key, n)
		if seen[n] {
			r.Fail(key, n, "is there already, here or as @bins")
		}
		seen[n] = true
	}
}
