package main

import "github.com/plumbline/plumbline/trainer/recipe"

// ablation are the parts of MaC-Cal, put on one after the other, and the whole with one taken off. Everything else,
// the learning rate too, is the preset's.
func ablation() []method {
	var list []method
	for _, p := range []struct {
		name, title string
		whole       recipe.Config
	}{{"stable", "stable", recipe.MaCCalStable()}, {"printed", "printed", recipe.MaCCalPrinted()}} {
		part := func(name, title string, change func(m *recipe.MaCCal)) {
			c, m := p.whole, *p.whole.MaCCal
			change(&m)
			c.MaCCal = &m
			list = append(list, method{name: p.name + "_" + name, title: p.title + ": " + title,
				grid: []recipe.Config{c}})
		}
		part("none", "fresh bottleneck, no masks", func(m *recipe.MaCCal) { m.Masks, m.Adaptive = false, false })
		part("masks", "+ masks, q = .5", func(m *recipe.MaCCal) {
			m.Restrict, m.Adaptive, m.Decay = false, false,
				false
		})
		part("restrict", "+ masks on the gradient", func(m *recipe.MaCCal) { m.Adaptive, m.Decay = false, false })
		part("adaptive", "+ adaptive q, bound .1", func(m *recipe.MaCCal) { m.Decay = false })
		part("whole", "+ decaying bound (the whole)", func(*recipe.MaCCal) {})
		part("no_restrict", "the whole without masks on the gradient", func(m *recipe.MaCCal) { m.Restrict = false })
		if p.whole.MaCCal.Scale {
			part("no_scale", "the whole without the scaling by q at inference",
				func(m *recipe.MaCCal) { m.Scale = false })
		}
	}
	return list
}
