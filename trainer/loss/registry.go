package loss

import (
	"fmt"
	"strings"
)

// entry builds one kind of loss: exactly one of row and batch is set. wraps says that batch takes an inner row loss.
type entry struct {
	name  string
	row   func(o *options) rowLoss
	batch func(o *options, inner rowLoss) term
	wraps bool
}

// entries are all kinds, in the order of the documentation.
func entries() []entry {
	return []entry{
		{name: "ce", row: func(*options) rowLoss { return crossEntropy{} }},
		{name: "squared", row: func(*options) rowLoss { return squared{} }},
		{name: "smoothing", row: func(o *options) rowLoss { return smoothing{o.number("epsilon", 0.05, 0, 1)} }},
		{name: "focal", row: func(o *options) rowLoss { return focal{o.number("gamma", 3, 0, maxGamma)} }},
		{name: "flsd53", row: func(*options) rowLoss { return flsd53{} }},
		{name: "inverse_focal", row: func(o *options) rowLoss { return inverseFocal{o.inverseFocalGamma()} }},
		{name: "dual_focal", row: newDualFocal},
		{name: "aurc", wraps: true, batch: newAURC},
		{name: "au", wraps: true, batch: newAU},
		{name: "sbece", batch: newSBECE},
		{name: "avuc", batch: newAvuc},
		{name: "savuc", batch: newSoftAvuc},
		{name: "mmce", batch: func(o *options, _ rowLoss) term { return &mmce{root: o.flag("root")} }},
		{name: "mbls", row: newMargin},
		{name: "acls", row: newACLS},
		{name: "mdca", batch: func(*options, rowLoss) term { return &mdca{} }},
		{name: "cpc", row: newCPC},
		{name: "crl", batch: func(o *options, _ rowLoss) term { return &crl{csf: o.csf()} }},
		{name: "entropy", row: func(*options) rowLoss { return penalty{} }},
		{name: "kde", batch: newKDE},
		{name: "kde_xe", batch: newKDEXE},
		{name: "classwise", wraps: true, batch: newClassWise},
	}
}

func newDualFocal(o *options) rowLoss {
	return dualFocal{
		gamma:   o.number("gamma", 5, 0, maxGamma),
		variant: o.choice("variant", dualEq24, dualReleased, dualEq2526),
	}
}

func newAURC(o *options, inner rowLoss) term { return &aurc{csf: o.csf(), inner: inner} }

func newAU(o *options, inner rowLoss) term {
	return &au{
		csf:       o.csf(),
		kappa:     o.number("kappa", 0.5, 0, 1),
		through:   o.flag("through"),
		normalise: o.flag("normalise"),
		inner:     inner,
		cdf:       binnedCDF{nu: o.number("nu", 0.1, 1e-6, 1e3), bins: o.whole("bins", 50, 1, 100000)},
	}
}

func newSBECE(o *options, _ rowLoss) term {
	return &sbece{
		bins:        o.whole("bins", 15, 1, 1000),
		temperature: o.number("temperature", 0.01, 1e-6, 1e6),
		norm:        o.number("norm", 2, 1, 20),
		lb:          o.choice("variant", "bin", "lb") == "lb",
	}
}

func newAvuc(o *options, _ rowLoss) term {
	return avuc{kappa: o.number("kappa", 0.5, 0, 100), stop: o.flag("stop")}
}

func newSoftAvuc(o *options, _ rowLoss) term {
	return softAvuc{
		kappa:       o.inside("kappa", 0.5, 0, 1),
		temperature: o.number("temperature", 1, 1e-3, 1e3),
		unit:        o.choice("tanh", "nats", "unit") == "unit",
	}
}

func newMargin(o *options) rowLoss {
	return margin{
		lambda: o.number("lambda", 0.1, 0, maxLambda),
		margin: o.number("margin", 10, 0, 1e6),
		eq15:   o.flag("eq15"),
	}
}

func newACLS(o *options) rowLoss {
	return acls{
		lambda1:  o.number("lambda1", 0.1, 0, maxLambda),
		lambda2:  o.number("lambda2", 0.01, 0, maxLambda),
		margin:   o.number("margin", 10, 0, 1e6),
		released: o.flag("released"),
	}
}

func newCPC(o *options) rowLoss {
	return cpc{o.number("lambda1", 1, 0, maxLambda), o.number("lambda2", 1, 0, maxLambda), o.flag("cals")}
}

func newKDE(o *options, _ rowLoss) term {
	return &kde{bandwidth: o.number("bandwidth", 0.1, 1e-4, 1e3), power: o.number("norm", 1, 1, 20)}
}

// newKDEXE is cross-entropy and λ times kde.
func newKDEXE(o *options, _ rowLoss) term {
	lambda := o.number("lambda", 1, 0, maxLambda)
	return &sum{[]weighted{{1, meanOf{crossEntropy{}}}, {lambda, newKDE(o, nil)}}}
}

func newClassWise(o *options, inner rowLoss) term {
	return &classWise{
		alpha:   o.inside("alpha", 0, 0, 100),
		beta:    o.number("beta", 1.5, 0, 2),
		printed: o.flag("printed"),
		inner:   inner,
	}
}

// Names are the kinds of losses, as [Parse] takes them.
func Names() []string {
	var names []string
	for _, e := range entries() {
		names = append(names, e.name)
	}
	return names
}

// build makes the term and its name.
func build(p parsed) (term, string, error) {
	e, err := find(p.name)
	if err != nil {
		return nil, "", err
	}
	inner, suffix := rowLoss(crossEntropy{}), ""
	if p.of != nil {
		if !e.wraps {
			return nil, "", fmt.Errorf("loss %s: inner loss %q, allowed none", p.name, p.of.name)
		}
		if inner, suffix, err = buildRow(*p.of); err != nil {
			return nil, "", fmt.Errorf("loss %s: %w", p.name, err)
		}
		suffix = "(" + suffix + ")"
	}
	o := &options{name: p.name, given: p.options}
	var t term
	if e.row != nil {
		t = meanOf{e.row(o)}
	} else {
		t = e.batch(o, inner)
	}
	if err := o.finish(); err != nil {
		return nil, "", err
	}
	return t, o.text() + suffix, nil
}

func buildRow(p parsed) (rowLoss, string, error) {
	e, err := find(p.name)
	if err != nil {
		return nil, "", err
	}
	if e.row == nil || p.of != nil {
		allowed := strings.Join(rowNames(), ", ")
		return nil, "", fmt.Errorf("inner loss %q, allowed a mean over rows: %s", p.name, allowed)
	}
	o := &options{name: p.name, given: p.options}
	l := e.row(o)
	if err := o.finish(); err != nil {
		return nil, "", err
	}
	return l, o.text(), nil
}

func find(name string) (entry, error) {
	for _, e := range entries() {
		if e.name == name {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("loss %q, allowed %s", name, strings.Join(Names(), ", "))
}

func rowNames() []string {
	var names []string
	for _, e := range entries() {
		if e.row != nil {
			names = append(names, e.name)
		}
	}
	return names
}

// sum is several terms under one name.
type sum struct{ terms []weighted }

func (s *sum) add(r *rows, scale float64, grad []float64) float64 {
	var v float64
	for _, t := range s.terms {
		v += t.weight * t.term.add(r, scale*t.weight, grad)
	}
	return v
}
