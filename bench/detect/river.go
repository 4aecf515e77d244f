package main

import "math"

// What follows are river 0.22's detectors, operation for operation, so that they can have as many runs as plumbline's.
// peers.py holds them against river itself, run by run. update takes a value and reports an alarm; the value after an
// alarm begins anew.
type riverDetector interface{ update(x float64) bool }

// mean is river's running mean.
type mean struct{ n, m float64 }

func (s *mean) update(x float64) {
	s.n++
	s.m += (1 / s.n) * (x - s.m)
}

// pageHinkley is river.drift.PageHinkley, both directions.
type pageHinkley struct {
	threshold                float64
	fired, begun             bool
	x                        mean
	up, down, least, largest float64
}

func (d *pageHinkley) update(x float64) bool {
	const delta, alpha, warm = .005, 1 - .0001, 30
	if d.fired || !d.begun {
		*d = pageHinkley{threshold: d.threshold, begun: true, least: math.Inf(1), largest: -1}
	}
	d.x.update(x)
	dev := x - d.x.m
	d.up = alpha*d.up + dev - delta
	d.down = alpha*d.down + dev + delta
	d.least, d.largest = min(d.least, d.up), max(d.largest, d.down)
	if d.x.n >= warm {
		d.fired = d.up-d.least > d.threshold || d.largest-d.down > d.threshold
	}
	return d.fired
}

// ddm is river.drift.binary.DDM.
type ddm struct {
	threshold        float64
	fired, begun     bool
	p                mean
	pMin, sMin, both float64
}

func (d *ddm) update(x float64) bool {
	const warm = 30
	if d.fired || !d.begun {
		*d = ddm{threshold: d.threshold, begun: true, both: math.Inf(1)}
	}
	d.p.update(x)
	p := d.p.m
	s := math.Sqrt(p * (1 - p) / d.p.n)
	if d.p.n > warm {
		if p+s <= d.both {
			d.pMin, d.sMin, d.both = p, s, p+s
		}
		d.fired = d.fired || p+s > d.pMin+d.threshold*d.sMin
	}
	return d.fired
}

// hddmA is river.drift.binary.HDDM_A, for increases of the mean.
type hddmA struct {
	confidence float64
	fired      bool
	z, least   mean
}

func (d *hddmA) bound(n float64) float64 { return math.Sqrt(1 / (2 * n) * math.Log(1/d.confidence)) }

func (d *hddmA) update(x float64) bool {
	if d.fired {
		*d = hddmA{confidence: d.confidence}
	}
	d.z.update(x)
	if d.least.n == 0 || d.least.m+d.bound(d.least.n) >= d.z.m+d.bound(d.z.n) {
		d.least = d.z
	}
	if d.least.n != d.z.n {
		m := (d.z.n - d.least.n) / d.least.n * (1 / d.z.n)
		d.fired = d.z.m-d.least.m >= math.Sqrt(m/2*math.Log(2/d.confidence))
	}
	return d.fired
}

// sample is what hddmW keeps of one side: an exponentially weighted mean and McDiarmid's sum.
type sample struct {
	begun     bool
	mean, ibc float64
}

const fading = .05

func (s *sample) update(x float64) {
	if !s.begun {
		s.begun, s.mean, s.ibc = true, x, fading*fading+(1-fading)*(1-fading)
		return
	}
	s.mean = fading*x + (1-fading)*s.mean
	s.ibc = fading*fading + (1-fading)*(1-fading)*s.ibc
}

// hddmW is river.drift.binary.HDDM_W, for increases of the mean.
type hddmW struct {
	confidence           float64
	fired, begun         bool
	total, before, after sample
	cut                  float64
}

func (d *hddmW) bound(ibc float64) float64 { return math.Sqrt(ibc * math.Log(1/d.confidence) / 2) }

func (d *hddmW) update(x float64) bool {
	if d.fired || !d.begun {
		*d = hddmW{confidence: d.confidence, begun: true, cut: math.Inf(1)}
	}
	d.total.update(x)
	if end := d.total.mean + d.bound(d.total.ibc); end < d.cut {
		d.cut, d.before, d.after = end, d.total, sample{}
	} else {
		d.after.update(x)
	}
	d.fired = d.before.begun && d.after.begun && d.after.mean-d.before.mean > d.bound(d.before.ibc+d.after.ibc)
	return d.fired
}
