package rule

import (
	"cmp"
	"fmt"

	"github.com/plumbline/plumbline/operators/model/stage"
)

// Kinds of rules.
const (
	Excess    = "excess"
	Reference = "reference"
	Distance  = "distance"
	Estimate  = "estimate"
	Threshold = "threshold"
)

// References of rules that compare.
const (
	Pinned  = "pinned"
	Rolling = "rolling"
)

// kindName returns the name of the rule's kind.
func (s *Config) kindName() string { return cmp.Or(s.Kind, Excess) }

// fingerprint identifies what the rule measures. The bounds are not part of it, so that a saved state stays
// usable when only a bound changes.
func (s *Config) fingerprint() string {
	age := int64(s.Age)
	if s.Measure != Coverage {
		age = 0
	}
	return fmt.Sprint(s.kindName(), " ", s.Measure, " ", s.Signal, " ", s.Score, " ", s.Reference, " ", s.ReferenceRows,
		" ", s.Rows,
		" ", s.below(), " ", age)
}

// reference returns the kind of reference that the rule window keeps; "" if the rule compares with none.
func (s *Config) reference() string {
	if k, _ := kindOf(s.Kind); k.compares {
		return s.Reference
	}
	return ""
}

// below reports whether the rule fires on low values.
func (s *Config) below() bool { return s.Side == "below" }

// beyond reports whether x is past a bound: below it if the rule fires on low values, otherwise above it.
func (s *Config) beyond(x, bound float64) bool {
	if s.below() {
		return x < bound
	}
	return x > bound
}

// sides returns the words for the sides of Fire and Clear.
func (s *Config) sides() (fire, clear string) {
	if s.below() {
		return "below", "above"
	}
	return "above", "below"
}

// warm reports whether a key has had enough labelled rows for the rule to fire. Rules that need no labels do not wait.
func (s *Config) warm(k *stage.Key) bool {
	kind, _ := kindOf(s.Kind)
	return k.Labelled >= s.WarmupRows || kind.unlabelled || s.Measure == Coverage
}
