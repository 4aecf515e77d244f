package detect

import (
	"math"
	"sync"
)

// DictionaryVersion changes whenever an expert or the encoded state does: state of another one is refused.
const DictionaryVersion = 5

// Kind says what an expert bets on.
type Kind uint8

const (
	// Global experts bet on all bins, by a shift of the whole curve fixed beforehand.
	Global Kind = iota
	// Local experts bet on one bin.
	Local
	// Adaptive experts bet on what past panes have shown.
	Adaptive
)

func (k Kind) String() string { return [...]string{"global", "local", "adaptive"}[k] }

// expert is one betting strategy. Adaptive ones have no chords of their own: they are made for every pane.
type expert struct {
	kind      Kind
	dir       float64 // sign s of a - c that it bets on; 0 where adaptive
	bin       int     // of a local expert, else -1
	share     float64 // of its group's weight, beside the others' shares; 0 stands for 1
	logWeight float64
	half      int     // index into halfLives, of an adaptive expert
	shy       float64 // share of the noise that is taken off the growth of an adaptive expert of NullECE
	theta     float64 // stake of a fixed expert of NullECE
	excess    float64 // of a fixed expert of NullAccuracy: what the fall that it bets on exceeds ε by
	chords    []chord // by bin; one for a local expert, of NullClass ClassBands
	bets      uint64  // bins with a bet, of NullClass the class, as bits
}

// halfLives, in rows, over which adaptive experts remember.
var halfLives = [...]float64{1000, 8000}

// dictionary is what all detectors of one specification share. It never changes.
type dictionary struct {
	spec    Spec
	bins    []bin
	experts []expert
	weights []float64 // of the experts, e^logWeight
	// eceStake is the largest θ of an expert of NullECE.
	eceStake float64
	print    uint64
	spare    sync.Pool // of *scratch: detectors are many, and few observe a pane at a time
}

// borrow returns scratch memory for one update.
func (d *dictionary) borrow() *scratch {
	if s, ok := d.spare.Get().(*scratch); ok {
		return s
	}
	return &scratch{logE: make([]float64, len(d.experts)), growth: make([]float64, len(d.experts)),
		chords: make([]chord, len(d.bins))}
}

func newDictionary(s Spec) *dictionary {
	d := &dictionary{spec: s, bins: newBins(s), print: s.fingerprint()}
	switch s.Null {
	case NullBin:
		d.experts = binExperts(d.bins, s.Epsilon)
	case NullAccuracy:
		d.experts = accuracyExperts(d.bins, s.Epsilon)
	case NullClass:
		d.experts = classExperts(d.bins)
	default:
		d.setStake()
		d.experts = d.eceExperts()
	}
	for _, x := range d.experts {
		d.weights = append(d.weights, math.Exp(x.logWeight))
	}
	return d
}

// setStake bounds the stakes of NullECE, which are one for all bins.
func (d *dictionary) setStake() {
	loss := 1.0
	for _, b := range d.bins {
		loss = max(loss, 1+math.Abs(b.bias)+b.tol)
	}
	d.eceStake = stakeShare / loss
}

// group gives the experts of a group their shares of its weight.
func group(weight float64, e []expert) []expert {
	var total float64
	for i := range e {
		if e[i].share == 0 {
			e[i].share = 1
		}
		total += e[i].share
	}
	for i := range e {
		e[i].logWeight = math.Log(weight * e[i].share / total)
	}
	return e
}

// keep drops an expert that bets nowhere: its weight would be lost.
func keep(e []expert, x expert) []expert {
	for i, c := range x.chords {
		if c == (chord{}) {
			continue
		}
		if x.bin >= 0 {
			i = x.bin
		}
		x.bets |= 1 << i
	}
	if x.bets == 0 {
		return e
	}
	return append(e, x)
}

// The alternatives that fixed experts bet on.
var (
	signs = [...]float64{1, -1}
	// temperatures are slopes k of the logit, below 1 where the model is overconfident. Severe errors have larger
	// shares, here and in falls: they are found within a few panes, of which the weight takes the most.
	temperatures = [...]shared{{.25, 6}, {.5, 2}, {.65, 1}, {.8, 1}, {1.25, 1}, {1.5, 1}, {2, 1}}
	// falls are f where the rate of right rows is f times the confidence.
	falls = [...]shared{{.3, 2}, {.5, 2}}
	// globalExcess, unsureExcess and localExcess are what an error exceeds ε by.
	globalExcess = [...]float64{.02, .04, .08, .18}
	unsureExcess = [...]float64{.02, .04, .08}
	localExcess  = [...]float64{.08, .18, .38}
	// localShares are those of the sizes among the local experts: most errors of one bin are of middling size.
	localShares = [...]float64{1, 2, 1}
	// eceStakes are the fixed experts of NullECE, by sign.
	eceStakes = [len(signs)][]eceStake{
		{{.05, 0, 1}, {.1, 0, 1}, {.2, 0, 1}, {.4, 2, 1}, {.57, 2, 1}, {.8, 2, 1}},
		{{.05, 0, 1}, {.1, 0, 1.5}, {.2, 0, 1.5}, {.3, 2, 1.5}, {.4, 2, 1.5}, {.57, 1.5, 1.5}, {.8, 1.5, 1.5}},
	}
	// classStakes are signed by direction. A stake of .8 is best where a class is off by about .35, .4 by .2.
	classStakes = [...]float64{-.8, -.4, .4}
)

// shared is a parameter of an expert with its share among the experts of its group.
type shared struct{ at, share float64 }

// eceStake is a fixed expert of NullECE: its stake, and its direction s·min(1, ramp·m), s where ramp is 0. Rows of low
// confidence m are off by less in a large error, as a rate cannot fall far below them: with a ramp a bet loses less
// there.
type eceStake struct{ theta, ramp, share float64 }

// sure is the confidence above which unsure experts do not bet: they leave out the bins that reach beyond it. Rows that
// go wrong are mostly not the surest ones, so that an error of a part of the rows hardly shows among these, which are
// often half of all: a bet on them would lose what the other bins win.
const sure = .94

// binWeights are the shares of the global, unsure, local and adaptive experts of NullBin, eceWeights those of the fixed
// and the adaptive ones of NullECE.
var (
	binWeights = []float64{6.25, 1, 3, 1}
	eceWeights = []float64{3, 2}
)

// binExperts returns the dictionary of NullBin.
func binExperts(bins []bin, eps float64) []expert {
	var global, unsure, local, adaptive []expert
	for _, k := range temperatures {
		x := globalExpert(bins, math.Copysign(1, k.at-1), func(m float64) float64 { return atTemperature(m, k.at) })
		x.share = k.share
		global = keep(global, x)
	}
	for _, f := range falls {
		x := globalExpert(bins, -1, func(m float64) float64 { return f.at * m })
		x.share = f.share
		global = keep(global, x)
	}
	for _, s := range signs {
		for _, d := range globalExcess {
			global = keep(global, globalExpert(bins, s, func(m float64) float64 { return m + s*(eps+d) }))
		}
		for _, d := range unsureExcess {
			unsure = keep(unsure, unsureExpert(bins, s, eps+d))
		}
		local = append(local, localExperts(bins, s, eps)...)
	}
	for h := range halfLives {
		adaptive = append(adaptive, expert{kind: Adaptive, bin: -1, half: h})
	}
	return joinGroups(binWeights, global, unsure, local, adaptive)
}

// unsureExpert bets that all bins but the surest are off by the excess.
func unsureExpert(bins []bin, s, excess float64) expert {
	x := globalExpert(bins, s, func(m float64) float64 { return m + s*excess })
	for j, b := range bins {
		if b.hi > sure {
			x.chords[j] = chord{}
		}
	}
	return x
}

// localExperts bet on one bin each.
func localExperts(bins []bin, s, eps float64) []expert {
	var local []expert
	for j, b := range bins {
		for i, d := range localExcess {
			const edge = 1e-9 // 1.5/15 - .1 is a rate of 0, whichever way it rounds
			if p := b.mid + b.bias + s*(eps+d); p > edge && p < 1-edge {
				c := b.newChord(b.stake(s, p), s, b.tol)
				local = keep(local, expert{kind: Local, dir: s, bin: j, share: localShares[i], chords: []chord{c}})
			}
		}
	}
	return local
}

// accuracyExperts returns the dictionary of NullAccuracy: falls that exceed ε, in its one bin, ¾; adaptive ¼.
func accuracyExperts(bins []bin, eps float64) []expert {
	var fixed, adaptive []expert
	for _, d := range globalExcess {
		x := expert{kind: Global, dir: -1, bin: -1, excess: d, chords: []chord{bins[0].fallChord(eps, d)}}
		fixed = keep(fixed, x)
	}
	for h := range halfLives {
		adaptive = append(adaptive, expert{kind: Adaptive, bin: -1, half: h})
	}
	return joinGroups([]float64{3, 1}, fixed, adaptive)
}

// classExperts returns the dictionary of NullClass: bets on one class each, all of the same weight.
func classExperts(bins []bin) []expert {
	var local []expert
	for k := range len(bins) / ClassBands {
		for _, stake := range classStakes {
			s := math.Copysign(1, stake)
			theta := min(math.Abs(stake), stakeShare/(1+bins[0].tol))
			x := expert{kind: Local, dir: s, bin: k}
			for _, b := range bins[k*ClassBands : (k+1)*ClassBands] {
				x.chords = append(x.chords, b.newChord(theta, s, b.tol))
			}
			local = keep(local, x)
		}
	}
	return joinGroups([]float64{1}, local)
}

// joinGroups shares a weight of 1 over the groups that have experts.
func joinGroups(weights []float64, groups ...[]expert) []expert {
	var total float64
	for i, g := range groups {
		if len(g) > 0 {
			total += weights[i]
		}
	}
	var all []expert
	for i, g := range groups {
		all = append(all, group(weights[i]/total, g)...)
	}
	return all
}

// globalExpert bets in every bin on the rate at(middle of the bin + bias). Its stake is constant in a bin. The
// likelihood ratio of a shift of the logit would be no valid bet under NullBin, because its stake depends on c inside
// the bin.
func globalExpert(bins []bin, s float64, at func(float64) float64) expert {
	x := expert{kind: Global, dir: s, bin: -1}
	for _, b := range bins {
		x.chords = append(x.chords, b.newChord(b.stake(s, at(b.mid+b.bias)), s, b.tol))
	}
	return x
}

// rivals is how many equal classes a top label is taken to compete with.
const rivals = 3

// atTemperature returns the rate of right rows at confidence c where the logits should have been k times as large:
//
//	σ(k·logit c + (k - 1)·ln rivals)
//
// With a top class against r equal ones, c = 1/(1 + r·e^-Δ), so the gap of the logits is Δ = logit c + ln r, and k·Δ
// gives this.
func atTemperature(c, k float64) float64 {
	c = clipRate(c)
	gap := math.Log(c/(1-c)) + math.Log(rivals)
	return 1 / (1 + rivals*math.Exp(-k*gap))
}

// eceExperts returns the dictionary of NullECE: fixed stakes of both signs, and adaptive ones.
func (d *dictionary) eceExperts() []expert {
	var fixed, adaptive []expert
	for i, s := range signs {
		for _, e := range eceStakes[i] {
			x := expert{kind: Global, dir: s, bin: -1, theta: min(e.theta, d.eceStake), share: e.share}
			for j, b := range d.bins {
				g := s
				if e.ramp > 0 {
					g *= min(1, e.ramp*b.mid)
				}
				x.chords = append(x.chords, d.eceChord(j, x.theta, g))
			}
			fixed = keep(fixed, x)
		}
	}
	for h := range halfLives {
		for _, shy := range shyness {
			adaptive = append(adaptive, expert{kind: Adaptive, bin: -1, half: h, shy: shy})
		}
	}
	return joinGroups(eceWeights, fixed, adaptive)
}
