package model

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Rules are changed all the time, and no change of them stops a task. What a checkpoint has of a rule is that of the rule of the same name
// and print now: one that is new begins without rows, one that is gone or means something else ends what it has firing.

// storedRule is a rule of a checkpoint.
type storedRule struct {
	name, print string
	state       stage.AlertState
	look        []byte
}

// print tells rules apart whose state means different things: what they look at, not the bounds that they hold it against.
func (s *RuleSpec) print() string {
	age := int64(s.Age)
	if s.Measure != measureCoverage {
		age = 0
	}
	kind := s.Kind
	if kind == "" {
		kind = kindExcess
	}
	return fmt.Sprint(kind, " ", s.Measure, " ", s.Signal, " ", s.Score, " ", s.Reference, " ", s.ReferenceRows, " ", s.Rows, " ", s.below(), " ", age)
}

func (k *keyState) adopt(stored []storedRule, cfg *ModelConfig) {
	for i := range stored {
		s := &stored[i]
		at := slices.IndexFunc(cfg.Rules, func(r RuleSpec) bool { return r.Name == s.name })
		switch {
		case at < 0 || k.Slice != "" && !cfg.Rules[at].Slices:
			k.ended = append(k.ended, ended{s.state, fmt.Sprintf("switched off: the configuration has no rule %s here any more; whether the error is gone is not known", s.name)})
		case s.print != cfg.Rules[at].print() || !k.restoreLook(s.look, at, cfg):
			k.ended = append(k.ended, ended{s.state, fmt.Sprintf("rule %s has changed and begins anew; whether the error is gone is not known", s.name)})
		default:
			k.rules[at] = s.state
		}
	}
}

// restoreLook reads what a rule looks at; false where that is of another rule.
func (k *keyState) restoreLook(b []byte, i int, cfg *ModelConfig) bool {
	if len(b) == 0 || k.looks[i] == nil {
		return len(b) == 0 && k.looks[i] == nil
	}
	in, l := binenc.NewReader(b), cfg.Rules[i].newLook()
	l.restore(&in, cfg.Rules[i].lookSize(cfg.Bins))
	if in.Close() != nil {
		return false
	}
	k.looks[i] = l
	return true
}
