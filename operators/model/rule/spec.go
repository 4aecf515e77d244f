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

// kind is the kind of the rule.
func (s *Config) kind() string { return cmp.Or(s.Kind, Excess) }

// print tells rules apart whose state means different things: what they look at, not the bounds that they hold it
// against.
func (s *Config) print() string {
	age := int64(s.Age)
	if s.Measure != Coverage {
		age = 0
	}
	return fmt.Sprint(s.kind(), " ", s.Measure, " ", s.Signal, " ", s.Score, " ", s.Reference, " ", s.ReferenceRows,
		" ", s.Rows,
		" ", s.below(), " ", age)
}

// reference is what the rule window keeps a reference for; "" for kinds that compare with nothing.
func (s *Config) reference() string {
	if s.Kind == Reference || s.Kind == Distance {
		return s.Reference
	}
	return ""
}

// below reports whether the rule is for falls.
func (s *Config) below() bool { return s.Side == "below" }

// beyond reports whether x is on the far side of a bound: below it where the rule is for falls, else above it.
func (s *Config) beyond(x, bound float64) bool {
	if s.below() {
		return x < bound
	}
	return x > bound
}

// sides are the words for the sides of fire and of clear.
func (s *Config) sides() (fire, clear string) {
	if s.below() {
		return "below", "above"
	}
	return "above", "below"
}

// warm reports whether a key has had rows enough for the rule to fire. Rules that need no label do not wait for labels.
func (s *Config) warm(k *stage.Key) bool {
	return k.Labelled >= s.WarmupRows || s.Kind == Distance || s.Measure == Coverage
}
