package loss

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxWeight bounds the weights of terms, and maxLambda those inside them, so that sums stay finite.
const (
	maxWeight = 1e6
	maxLambda = 1e6
)

// options reads the options of one term. The first error stays.
type options struct {
	name  string
	given map[string]string
	known []string
	set   []string // key:value, as they are written into the loss's name
	err   error
}

func (o *options) lookup(key string) (string, bool) {
	o.known = append(o.known, key)
	v, ok := o.given[key]
	return v, ok
}

func (o *options) refuse(key, value, allowed string) {
	if o.err == nil {
		o.err = fmt.Errorf("loss %s: %s %q, allowed %s", o.name, key, value, allowed)
	}
}

// number is in [lo, hi].
func (o *options) number(key string, byDefault, lo, hi float64) float64 {
	return o.float(key, byDefault, fmt.Sprintf("%g..%g", lo, hi), func(v float64) bool { return v >= lo && v <= hi })
}

// inside is in (lo, hi).
func (o *options) inside(key string, byDefault, lo, hi float64) float64 {
	allowed := fmt.Sprintf("above %g and below %g", lo, hi)
	return o.float(key, byDefault, allowed, func(v float64) bool { return v > lo && v < hi })
}

func (o *options) float(key string, byDefault float64, allowed string, takes func(float64) bool) float64 {
	text, ok := o.lookup(key)
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !takes(v) {
		o.refuse(key, text, allowed)
		return byDefault
	}
	o.set = append(o.set, key+":"+strconv.FormatFloat(v, 'g', -1, 64))
	return v
}

func (o *options) whole(key string, byDefault, lo, hi int) int {
	text, ok := o.lookup(key)
	if !ok {
		return byDefault
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < lo || v > hi {
		o.refuse(key, text, fmt.Sprintf("whole numbers %d..%d", lo, hi))
		return byDefault
	}
	o.set = append(o.set, key+":"+strconv.Itoa(v))
	return v
}

func (o *options) flag(key string) bool {
	text, ok := o.lookup(key)
	if !ok {
		return false
	}
	if text != "true" && text != "false" {
		o.refuse(key, text, "true, false")
		return false
	}
	if text == "true" {
		o.set = append(o.set, key+":true")
	}
	return text == "true"
}

func (o *options) choice(key string, allowed ...string) string {
	text, ok := o.lookup(key)
	if !ok {
		return allowed[0]
	}
	if !slices.Contains(allowed, text) {
		o.refuse(key, text, strings.Join(allowed, ", "))
		return allowed[0]
	}
	if text != allowed[0] {
		o.set = append(o.set, key+":"+text)
	}
	return text
}

func (o *options) csf() string { return o.choice("csf", csfMSP, csfMargin, csfNegEnt) }

// finish refuses keys that no option has.
func (o *options) finish() error {
	if o.err != nil {
		return o.err
	}
	for _, key := range sortedKeys(o.given) {
		if !slices.Contains(o.known, key) {
			allowed := strings.Join(o.known, ", ")
			if allowed == "" {
				allowed = "no options"
			}
			return fmt.Errorf("loss %s: key %q with value %q, allowed %s", o.name, key, o.given[key], allowed)
		}
	}
	return nil
}

func (o *options) text() string {
	if len(o.set) == 0 {
		return o.name
	}
	return o.name + "{" + strings.Join(o.set, ",") + "}"
}

// inverseFocalGamma refuses the γ for which the loss rises with p_y somewhere, unless force is set.
func (o *options) inverseFocalGamma() float64 {
	force := o.flag("force")
	gamma := o.number("gamma", 3, 0, maxGamma)
	if gamma > inverseGamma && !force {
		allowed := fmt.Sprintf("0..%.4g: above, the loss rises with the probability of the label somewhere; "+
			"force:true overrides", inverseGamma)
		o.refuse("gamma", strconv.FormatFloat(gamma, 'g', -1, 64), allowed)
	}
	return gamma
}

// maxGamma keeps (1 + p)^γ finite.
const maxGamma = 100

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
