package cuda

import (
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/trainer/loss"
)

// The numbers of kernels/loss.h and kernels/rows.h.
const (
	lossCE = iota
	lossSquared
	lossSmoothing
	lossFocal
	lossFLSD53
	lossInverseFocal
	lossDualFocal
	lossEntropy
)

var (
	lossKinds = map[string]int32{"ce": lossCE, "squared": lossSquared, "smoothing": lossSmoothing, "focal": lossFocal,
		"flsd53": lossFLSD53, "inverse_focal": lossInverseFocal, "dual_focal": lossDualFocal, "entropy": lossEntropy}
	// gammas are the defaults of package loss: the exponent, or smoothing's epsilon.
	gammas   = map[int32]float64{lossSmoothing: 0.05, lossFocal: 3, lossInverseFocal: 3, lossDualFocal: 5}
	csfs     = map[string]int32{"msp": 0, "margin": 1, "negent": 2}
	variants = map[string]int32{"eq24": 0, "released": 1, "eq25_26": 2}
)

// compiled is a loss of a session. Where fused is set the kernels compute it, as plan says; else the host does.
type compiled struct {
	host  *loss.Loss
	plan  lossPlan
	fused bool
	au    bool
	// at is the plan on the device, graphs what was recorded with it.
	at uint64
}

// compile reads a loss. Sums of up to four means over rows, and of detached au over one such mean, are fused.
func compile(text string) (*compiled, error) {
	l, err := loss.Parse(text)
	if err != nil {
		return nil, err
	}
	c := &compiled{host: l, fused: true}
	terms := strings.Split(l.Name(), " + ")
	if len(terms) > maxTerms {
		c.fused = false
		return c, nil
	}
	dual := 0
	for i, t := range terms {
		if !c.add(&c.plan.Term[i], t) {
			c.fused = false
			return c, nil
		}
		if c.plan.Term[i].Kind == lossDualFocal {
			dual++
		}
	}
	c.plan.Terms = int32(len(terms))
	// The kernel has one rival class a row.
	c.fused = dual <= 1
	return c, nil
}

// written is one term of a loss's name: weight*name{options}(inner).
type written struct {
	weight  float64
	name    string
	options map[string]string
	inner   string
}

func read(term string) written {
	w := written{weight: 1, options: map[string]string{}}
	if weight, rest, ok := strings.Cut(term, "*"); ok {
		v, err := strconv.ParseFloat(weight, 64)
		if err != nil {
			panic("cuda: loss " + term + " has no number as its weight")
		}
		w.weight, term = v, rest
	}
	if head, inner, ok := strings.Cut(term, "("); ok {
		term, w.inner = head, strings.TrimSuffix(inner, ")")
	}
	name, list, _ := strings.Cut(term, "{")
	w.name = name
	for _, pair := range strings.Split(strings.TrimSuffix(list, "}"), ",") {
		if key, value, ok := strings.Cut(pair, ":"); ok {
			w.options[key] = value
		}
	}
	return w
}

func (w written) number(key string, byDefault float64) float64 {
	text, ok := w.options[key]
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("cuda: loss " + w.name + ": " + key + " is no number")
	}
	return v
}

func choice(byName map[string]int32, text string) int32 { return byName[text] }

// add sets a term and says whether the kernels have it.
func (c *compiled) add(to *lossTerm, term string) bool {
	w := read(term)
	to.Weight = w.weight
	if w.name == "au" {
		if c.au || w.options["through"] == "true" {
			return false
		}
		c.au, to.AU = true, 1
		c.plan.CSF = choice(csfs, w.options["csf"])
		c.plan.Kappa, c.plan.Nu = w.number("kappa", 0.5), w.number("nu", 0.1)
		c.plan.Bins = int32(w.number("bins", 50))
		if w.options["normalise"] == "true" {
			c.plan.Normalise = 1
		}
		if w.inner == "" {
			w.inner = "ce"
		}
		w = read(w.inner)
	} else if w.inner != "" {
		return false
	}
	kind, ok := lossKinds[w.name]
	if !ok {
		return false
	}
	to.Kind, to.Variant = kind, choice(variants, w.options["variant"])
	to.Gamma = w.number("gamma", w.number("epsilon", gammas[kind]))
	return true
}
