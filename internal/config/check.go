package config

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/setting"
)

// Check implements the check of conditions between keys.
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
	if t.LabelsUnkeyed != "" && t.Labels == "" {
		r.Fail("labels_unkeyed", setting.Quote(t.LabelsUnkeyed), "has no effect while @labels is empty")
	}
}

// Check implements the check of conditions between keys.
func (m Model) Check(r *setting.Report) {
	if m.Classes == 1 {
		r.Fail("classes", m.Classes, "must be 0 (learnt) or 2 to 1000000")
	}
}

// divides checks a number of bins.
func divides(r *setting.Report, key string, n int) {
	if n > 0 && n <= acc.GridCells && acc.GridCells%n != 0 {
		r.Fail(key, n, "must divide %d, such as 10, 12, 15, 18, 20, 24, 25, 30", acc.GridCells)
	}
}

// Check implements the check of conditions between keys.
func (s Stats) Check(r *setting.Report) {
	divides(r, "bins", s.Bins)
	seen := map[int]bool{s.Bins: true}
	for i, n := range s.ExtraBins {
		key := setting.Item("extra_bins", i)
		divides(r, key, n)
		if seen[n] {
			r.Fail(key, n, "is there already, here or as @bins")
		}
		seen[n] = true
	}
}
