package recipe

import (
	"fmt"
	"math"
	"strconv"

	"github.com/plumbline/plumbline/trainer/loss"
	"github.com/plumbline/plumbline/trainer/optim"
	"github.com/plumbline/plumbline/trainer/variant"
)

// Heads that a training starts from.
const (
	HeadCurrent    = "current"    // the one that serves
	HeadLinear     = "linear"     // one layer, fresh
	HeadBottleneck = "bottleneck" // two layers with ReLU, fresh
)

// Config is a training. The recipes ([CrossEntropy], [AU], [MaCCalStable], [MaCCalPrinted]) are starting points.
type Config struct {
	// Loss is text of package loss.
	Loss string `json:"loss"`
	// Head is current, linear or bottleneck, and Width the bottleneck's; 0 means min(D, 512).
	Head  string `json:"head"`
	Width int    `json:"width,omitempty"`

	Epochs int `json:"epochs"`
	Batch  int `json:"batch"`
	// LR is the learning rate, which Schedule multiplies; the others are those of optim.SGD.
	LR          float64        `json:"lr"`
	Momentum    float64        `json:"momentum"`
	WeightDecay float64        `json:"weight_decay"`
	Decoupled   bool           `json:"decoupled,omitempty"`
	Nesterov    bool           `json:"nesterov,omitempty"`
	Schedule    optim.Schedule `json:"schedule"`

	// Patience stops after that many epochs without a lower validation NLL; 0 never stops.
	Patience int `json:"patience,omitempty"`
	// KeepLast returns the head of the last epoch, not of that with the lowest validation NLL.
	KeepLast bool `json:"keep_last,omitempty"`
	// Tempered compares epochs by the validation NLL after the best temperature: for losses that leave a head too sure
	// or too unsure on purpose, such as focal, of which the NLL itself picks an early epoch.
	Tempered bool `json:"tempered,omitempty"`
	// Mixup is α of Beta(α, α) for mixing features, in (0, 1]; 0 is off.
	Mixup float64 `json:"mixup,omitempty"`

	// CDF says whose scores the loss au counts: batch (also where empty), those of each mini-batch, as its paper does;
	// or rows, those of the current head on all training rows, counted once: the stream's own.
	CDF string `json:"cdf,omitempty"`

	// Peel is γ of progressively layer-peeled training (PLP), 0 where that is off: of L layers, those above layer L − j
	// are frozen from epoch (j/L)^γ·Epochs on. Reference: Wang and Zhang, Calibration Bottleneck, ICML 2024.
	Peel float64 `json:"peel,omitempty"`
	// Method is empty, or variational or balanced (package variant), with its settings.
	Method string  `json:"method,omitempty"`
	KL     float64 `json:"kl,omitempty"`
	Delta  float64 `json:"delta,omitempty"`

	Interleave *Interleave `json:"interleave,omitempty"`
	MaCCal     *MaCCal     `json:"maccal,omitempty"`

	// Seed decides initial weights, orders, masks, mixup and which rows are held for interleaving.
	Seed uint64 `json:"seed"`
}

// Interleave trains on a second loss after every epoch, on training rows of its own that the first loss never sees.
// Reference: Karandikar et al., Soft Calibration Objectives for Neural Networks, NeurIPS 2021, Appendix B.
type Interleave struct {
	// Loss is text of package loss.
	Loss string `json:"loss"`
	// Share of the training rows, drawn by seed; 0 means 0.1.
	Share float64 `json:"share,omitempty"`
	// LR is its learning rate; 0 means that of the first loss.
	LR float64 `json:"lr,omitempty"`
	// Batch is its mini-batch; 0 means that of the first loss.
	Batch int `json:"batch,omitempty"`
}

const defaultShare = 0.1

func (v *Interleave) share() float64 {
	if v.Share == 0 {
		return defaultShare
	}
	return v.Share
}

func (v *Interleave) batch(c Config) int {
	if v.Batch == 0 {
		return c.Batch
	}
	return v.Batch
}

// CrossEntropy fine-tunes the current head.
func CrossEntropy() Config {
	return Config{Loss: "ce", Head: HeadCurrent, Epochs: 40, Batch: 128, LR: 0.1, Momentum: 0.9, WeightDecay: 5e-4,
		Schedule: optim.Schedule{Kind: optim.Cosine}}
}

// AU fine-tunes the current head on AU_{P_Xτ} with detached weights, at three times cross-entropy's rate, since its
// mean weight is below 1.
func AU() Config {
	c := CrossEntropy()
	c.Loss, c.LR = "au{csf:msp,kappa:0.5,nu:0.1}", 3*c.LR
	return c
}

// TST is two-stage training: the classifier anew, on the features that the network has learnt. Reference: Jordahn and
// Olmos, Decoupling Feature Extraction and Classification Layers for Calibrated Neural Networks, ICML 2024.
func TST() Config {
	c := CrossEntropy()
	c.Head = HeadBottleneck
	return c
}

// VTST is TST with Gaussian values in the hidden layer.
func VTST() Config {
	c := TST()
	c.Method = variant.Variational
	return c
}

// BalCAL balances a fresh linear head with a fixed simplex.
func BalCAL() Config {
	c := CrossEntropy()
	c.Head, c.Method = HeadLinear, variant.Balanced
	return c
}

// PLP freezes a fresh bottleneck's last layer half-way, and takes the last epoch.
func PLP() Config {
	c := TST()
	c.Peel, c.KeepLast = 1, true
	return c
}

const (
	maxEpochs = 1_000_000
	maxBatch  = 1 << 20
	maxWidth  = 1 << 16
)

// Validate returns an error that names the key, its value and what is allowed.
func (c Config) Validate() error {
	if _, err := loss.Parse(c.Loss); err != nil {
		return err
	}
	switch c.Head {
	case HeadCurrent, HeadLinear, HeadBottleneck:
	default:
		return fmt.Errorf("head %q, allowed current, linear, bottleneck", c.Head)
	}
	if err := c.validateRanges(); err != nil {
		return err
	}
	if !(c.Momentum >= 0 && c.Momentum < 1) {
		return fmt.Errorf("momentum %v, allowed 0 up to and without 1", c.Momentum)
	}
	if err := c.Schedule.Validate(); err != nil {
		return err
	}
	if err := c.validateCDF(); err != nil {
		return err
	}
	if err := c.validateMethod(); err != nil {
		return err
	}
	if v := c.Interleave; v != nil {
		if err := v.validate(); err != nil {
			return fmt.Errorf("interleave: %w", err)
		}
	}
	if c.MaCCal != nil {
		if err := c.MaCCal.validate(); err != nil {
			return fmt.Errorf("maccal: %w", err)
		}
	}
	return nil
}

// validateMethod refuses what a method does not go with.
func (c Config) validateMethod() error {
	fixed := c.MaCCal != nil || c.Mixup > 0
	switch {
	case c.Method == "":
	case c.Method != variant.Variational && c.Method != variant.Balanced:
		return fmt.Errorf("method %q, allowed %s, %s", c.Method, variant.Variational, variant.Balanced)
	case fixed || c.Peel > 0:
		return fmt.Errorf("method %s with maccal, mixup or peel, allowed alone", c.Method)
	case c.Method == variant.Variational && c.Head != HeadBottleneck:
		return fmt.Errorf("method %s from head %s, allowed %s", c.Method, c.Head, HeadBottleneck)
	case c.Method == variant.Balanced && c.Head == HeadBottleneck:
		return fmt.Errorf("method %s from head %s, allowed %s, %s", c.Method, c.Head, HeadCurrent, HeadLinear)
	}
	return nil
}

func (c Config) validateRanges() error {
	for _, r := range []struct {
		key    string
		v      float64
		lo, hi float64
	}{
		{"width", float64(c.Width), 0, maxWidth},
		{"epochs", float64(c.Epochs), 1, maxEpochs},
		{"batch", float64(c.Batch), 1, maxBatch},
		{"lr", c.LR, 0, 1e6},
		{"weight_decay", c.WeightDecay, 0, 1e3},
		{"patience", float64(c.Patience), 0, maxEpochs},
		{"mixup", c.Mixup, 0, 1},
		{"peel", c.Peel, 0, 100},
		{"kl", c.KL, 0, 1e6},
		{"delta", c.Delta, 0, 10},
	} {
		if !(r.v >= r.lo && r.v <= r.hi) {
			return fmt.Errorf("%s %s, allowed %s..%s", r.key, plain(r.v), plain(r.lo), plain(r.hi))
		}
	}
	return nil
}

// plain is a number as people write it: 1048576, 0.1.
func plain(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (v *Interleave) validate() error {
	if _, err := loss.Parse(v.Loss); err != nil {
		return err
	}
	switch {
	case !(v.Share >= 0 && v.Share < 1):
		return fmt.Errorf("share %v, allowed 0 up to and without 1", v.Share)
	case !(v.LR >= 0 && v.LR <= 1e6):
		return fmt.Errorf("lr %v, allowed 0..1e6", v.LR)
	case v.Batch < 0 || v.Batch > maxBatch:
		return fmt.Errorf("batch %d, allowed 0..%d", v.Batch, maxBatch)
	}
	return nil
}
