package recipe

import "github.com/plumbline/plumbline/trainer/backend"

// Report says how a training went: its curves, and which epoch the head is of.
type Report struct {
	Config  Config `json:"config"`
	Backend string `json:"backend"`
	// Train and Valid are the numbers of rows, Held those of Train that only the interleaved loss sees.
	Train int `json:"train"`
	Valid int `json:"valid"`
	Held  int `json:"held,omitempty"`
	// Scaled says that features were far from 1, and trained on with mean 0 and deviation 1. The head takes them as
	// they are.
	Scaled bool `json:"scaled,omitempty"`
	// Before is the initial head on the validation rows.
	Before backend.Measurement `json:"before"`
	// BeforeTempered is its NLL after the best temperature, where epochs are compared so.
	BeforeTempered float64       `json:"before_tempered,omitempty"`
	Epochs         []EpochReport `json:"epochs"`
	// Best is the epoch, from 1, that the head is of: of the lowest validation NLL, 0 for the current head as it was,
	// or the last with keep_last.
	Best int `json:"best"`
	// Stopped says that patience ended the training.
	Stopped bool `json:"stopped"`
}

// EpochReport is one point of the curves.
type EpochReport struct {
	Epoch int     `json:"epoch"` // from 1
	LR    float64 `json:"lr"`
	// Loss is the mean over the mini-batches before their updates, Second that of the interleaved loss.
	Loss   float64 `json:"loss"`
	Second float64 `json:"second,omitempty"`
	// Valid is the head of this epoch on the validation rows.
	Valid backend.Measurement `json:"valid"`
	// Tempered is its NLL after the best temperature, where epochs are compared so.
	Tempered float64 `json:"tempered,omitempty"`
	// Q is the share of kept weights in this epoch, NextQ what follows from Train under the bound Eta.
	Q     float64              `json:"q,omitempty"`
	NextQ float64              `json:"next_q,omitempty"`
	Eta   float64              `json:"eta,omitempty"`
	Train *backend.Measurement `json:"train,omitempty"`
}
