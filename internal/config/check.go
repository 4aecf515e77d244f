package config

import (
	"github.com/plumbline/plumbline/internal/setting"
)

// Check implements the setting package's check of conditions between keys. Of two keys with one name, it blames the
// later one, unless that is a default and so not what a person wrote.
func (t Topics) Check(r *setting.Report) {
	defaults := setting.Texts(setting.Default[Topics]())
	seen := map[string]int{}
	texts := setting.Texts(t)
	for i, f := range texts {
		if f.Value == "" {
			continue
		}
		first, dup := seen[f.Value]
		if !dup {
			seen[f.Value] = i
			continue
		}
		wrong, other := i, first
		if f == defaults[i] {
			wrong, other = first, i
		}
		r.Fail(texts[wrong].Key, setting.Quote(f.Value), "must differ from @%s", texts[other].Key)
	}
}

// Check implements the setting package's check of conditions between keys.
func (m Model) Check(r *setting.Report) {
	if m.Classes == 1 {
		r.Fail("classes", m.Classes, "must be 0 (learnt) or 2 to 1000000")
	}
}
