package main

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/recipe"
)

// method is a row of a table: a grid of settings, of which validation NLL takes one.
type method struct {
	name, title string
	grid        []recipe.Config
	kind        kind // in place of a grid
	// refit trains the chosen point again with the validation rows.
	refit bool
}

// kind says what a method does; all but trained have no grid.
type kind int

const (
	trained kind = iota
	unchanged
	temperature
	bestCalibrator
	auto
)

// reference is what all methods are compared with, its temperature on.
const reference = "ce"

var (
	rates  = []float64{0.01, 0.03, 0.1, 0.3}
	rates3 = []float64{0.03, 0.1, 0.3}
	rates2 = []float64{0.03, 0.1}
	// ratesAU are three times those of cross-entropy that it comes to, since the mean weight is below 1.
	ratesAU = []float64{0.1, 0.3, 0.9}
)

// losses are trainings from the current head with each loss and rate.
func losses(at []float64, format string, args ...float64) []recipe.Config {
	var out []recipe.Config
	for _, lr := range at {
		texts := []string{format}
		if len(args) > 0 {
			texts = nil
			for _, a := range args {
				texts = append(texts, fmt.Sprintf(format, a))
			}
		}
		for _, text := range texts {
			c := recipe.CrossEntropy()
			c.Loss, c.LR = text, lr
			out = append(out, c)
		}
	}
	return out
}

func decayed(list []recipe.Config, decay float64) []recipe.Config {
	for i := range list {
		list[i].WeightDecay = decay
	}
	return list
}

// bottleneck is cross-entropy on a fresh bottleneck.
func bottleneck() []recipe.Config {
	list := losses(rates3, "ce")
	for i := range list {
		list[i].Head = recipe.HeadBottleneck
	}
	return list
}

func preset(c recipe.Config, gammas ...float64) []recipe.Config {
	var out []recipe.Config
	for _, g := range gammas {
		m := *c.MaCCal
		m.Gamma = g
		c.MaCCal = &m
		out = append(out, c)
	}
	return out
}

// noMasks is the preset printed at q = 1: all weights, cross-entropy, the last epoch.
func noMasks() []recipe.Config {
	c := recipe.MaCCalPrinted()
	c.MaCCal = nil
	return []recipe.Config{c}
}

var gammas = []float64{0.9, 0.95, 1, 1.05}

// before are the methods that train nothing.
func before() []method {
	return []method{
		{name: "unchanged", title: "no change", kind: unchanged},
		{name: "temperature", title: "temperature", kind: temperature},
		{name: "calibrator", title: "best calibrator", kind: bestCalibrator},
	}
}

// methods are the rows of tables A and B.
func methods() []method {
	list := append(before(),
		method{name: "ce", title: "CE", grid: losses(rates, "ce")},
		method{name: "ce_refit", title: "CE, trained again with the validation rows", grid: losses(rates, "ce"),
			refit: true},
		method{name: "ce_decay", title: "CE, decay 3e-3", grid: decayed(losses(rates, "ce"), 3e-3)},
		method{name: "bottleneck", title: "CE, fresh bottleneck", grid: bottleneck()},
		method{name: "focal", title: "focal", grid: losses(rates3, "focal{gamma:%g}", 1, 2, 3)},
		method{name: "flsd53", title: "FLSD-53", grid: losses(rates3, "flsd53")},
		method{name: "inverse_focal", title: "inverse focal", grid: losses(rates2, "inverse_focal{gamma:%g}", 1, 2, 3)},
		method{name: "dual_eq24", title: "dual focal, Eq. 24", grid: losses(rates3, "dual_focal{gamma:%g}", 2, 5)},
		method{name: "dual_released", title: "dual focal, released",
			grid: losses(rates3, "dual_focal{variant:released,gamma:%g}", 2, 5)},
		method{name: "aurc", title: "AURC", grid: losses(rates3, "aurc")},
	)
	for _, csf := range []string{"msp", "margin", "negent"} {
		list = append(list, method{name: "au_" + csf, title: "AU, " + csf,
			grid: losses(ratesAU, "au{csf:"+csf+",kappa:%g}", 0.5, 0.9)})
	}
	for _, csf := range []string{"msp", "margin", "negent"} {
		list = append(list, method{name: "au_through_" + csf, title: "AU through, " + csf,
			grid: losses(rates2, "au{csf:"+csf+",through:true,kappa:%g}", 0.5, 0.9)})
	}
	return append(list,
		method{name: "au_normalised", title: "AU, msp, mean weight 1",
			grid: losses(rates3, "au{normalise:true,kappa:%g}", 0.5, 0.9)},
		method{name: "sbece", title: "CE + SB-ECE", grid: losses(rates2, "ce + %g*sbece", 0.1, 0.5, 1)},
		method{name: "focal_savuc", title: "focal + S-AvUC",
			grid: append(losses(rates2, "focal{gamma:1} + %g*savuc", 0.1, 0.5),
				losses(rates2, "focal{gamma:2} + %g*savuc", 0.1, 0.5)...)},
		method{name: "acls", title: "CE + ACLS", grid: losses(rates2, "ce + acls{margin:%g}", 6, 10)},
		method{name: "mbls", title: "CE + MbLS", grid: losses(rates2, "ce + mbls{margin:%g}", 6, 10)},
		method{name: "mdca", title: "CE + MDCA", grid: losses(rates2, "ce + %g*mdca", 1, 10)},
		method{name: "maccal", title: "MaC-Cal stable, γ = .95", grid: preset(recipe.MaCCalStable(), 0.95)},
		method{name: "maccal_gamma", title: "MaC-Cal stable, γ by validation", grid: preset(recipe.MaCCalStable(),
			gammas...)},
		method{name: "maccal_printed", title: "MaC-Cal printed", grid: preset(recipe.MaCCalPrinted(), 0.95)},
		method{name: "bottleneck_last", title: "the same without masks (q = 1)", grid: noMasks()},
		method{name: "auto", title: "`--recipe auto`", kind: auto},
	)
}

// fewMethods are those of the table of special settings.
func fewMethods() []method {
	var out []method
	for _, m := range methods() {
		switch m.name {
		case "unchanged", "temperature", "ce", "ce_decay", "au_msp", "maccal_gamma", "maccal_printed", "auto":
			out = append(out, m)
		}
	}
	return out
}
