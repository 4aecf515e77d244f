package config

import (
	"github.com/plumbline/plumbline/internal/setting"
)

// Check implements the setting package's check of conditions between keys.
func (t Topics) Check(r *setting.Report) {
	seen := map[string]string{}
	for _, f := range setting.Texts(t) {
		if f.Value == "" {
			continue
		}
		if other, dup := seen[f.Value]; dup {
			r.Fail(f.Key, setting.Quote(f.Value), "must differ from @%s", other)
		}
		seen[f.Value] = f.Key
	}
}

// Check implements the setting package's check of conditions between keys.
func (m Model) Check(r *setting.Report) {
	if m.Classes == 1 {
		r.Fail("classes", m.Classes, "must be 0 (learnt) or 2 to 1000000")
	}
}
