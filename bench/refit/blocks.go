package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// blockRows is the length of a stream in blocks.
const blockRows = 3 * weekRows

// Bars of streams in blocks of classes.
const (
	accuracyRows  = 2000 // after a publication
	accuracyFalls = .005
	nllRises      = .02
)

// blockNetsOfSet is how many nets there are of each set.
const blockNetsOfSet = 5

// blockNets are the nets of the streams in blocks. Nothing was chosen on the second half of them.
func blockNets(l *library, unseen bool) ([]*source, error) {
	h := &held{l: l}
	if unseen {
		return []*source{h.one(weakNet, "test_logits", "resnet18"), h.one(mnist, "test_logits", "mnist"),
			h.one(nets, "mobilenetv2_x1_0", "mobilenetv2_x1_0"), h.one(nets, "vgg16_bn", "vgg16_bn"),
			h.one(jpeg, "resnet20_contrast_s3", "jpeg contrast")}, h.err
	}
	return []*source{h.one(jpeg, "resnet20", "jpeg resnet20"), h.one(nets, "resnet20", "resnet20"),
		h.one(nets, "mobilenetv2_x0_5", "mobilenetv2_x0_5"), h.one(wide10, "test_probs", "wideresnet"),
		h.one(jpeg, "resnet20_gauss_noise_s1", "jpeg noise")}, h.err
}

// inBlocks are streams of real rows that come in blocks of one class, or of a few: by customer, batch or day.
func inBlocks(l *library, unseen bool) ([]recipe, error) {
	sources, err := blockNets(l, unseen)
	if err != nil {
		return nil, err
	}
	var out []recipe
	for i, src := range sources {
		for n, kind := range []struct {
			name    string
			classes int
			length  func(r *rand.Rand) int
			after   float64 // share of the stream before the blocks
		}{
			{"blocks of 250", 1, exactly(250), 0},
			{"blocks of 500", 1, exactly(500), 0},
			{"blocks of 1000", 1, exactly(1000), 0},
			{"blocks of 2000", 1, exactly(2000), 0},
			{"blocks of 4000", 1, exactly(4000), 0},
			{"blocks of 250 to 4000", 1, logUniform(250, 4000), 0},
			{"blocks of 10 to 4000", 1, logUniform(10, 4000), 0},
			{"three classes for 1000", 3, exactly(1000), 0},
			{"three classes for 2000", 3, exactly(2000), 0},
			{"no blocks", 10, exactly(1000), 0},
			{"blocks of 1000 after a third without", 1, exactly(1000), 1. / 3},
		} {
			m := mix{fmt.Sprintf("%s, %s", src.name, kind.name), 5000 + 100*uint64(i) + uint64(n), blockRows, true,
				src.each(), nil}
			out = append(out, recipe{m.name, true, func() (*stream, error) {
				m := m
				blocks, mixed := blocksOf(kind.classes, kind.length, len(m.sources)), atRandom(len(m.sources), 1)()
				m.which = func(r *rand.Rand, t float64) int {
					if t < kind.after {
						return mixed(r, t)
					}
					return blocks(r, t)
				}
				return m.streamOf(), nil
			}})
		}
	}
	return out, nil
}

func exactly(n int) func(*rand.Rand) int { return func(*rand.Rand) int { return n } }

func logUniform(lo, hi float64) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return int(lo * math.Pow(hi/lo, r.Float64())) }
}

// blocksOf draws rows of a few classes for a length of rows, and then of others.
func blocksOf(classes int, length func(*rand.Rand) int, k int) chooser {
	var now []int
	left := 0
	return func(r *rand.Rand, _ float64) int {
		if left == 0 {
			now, left = r.Perm(k)[:min(classes, k)], length(r)
		}
		left--
		return now[r.IntN(len(now))]
	}
}

// blockResult is what publications did to the accuracy and the NLL of a stream in blocks.
type blockResult struct {
	kind            string
	published, hurt int
	worse           int     // publications that raise the NLL of the day after them
	least           float64 // change of accuracy after a publication
	raw, ours, ts   float64 // NLL
	followed        float64 // NLL with refit.follow
	acc, rawAcc     float64
	lost            toRaw
	notOurs         unavoidable
}

func measureBlocks(o options, unseen bool) ([]blockResult, error) {
	recipes, err := inBlocks(&library{dir: o.data}, unseen)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(recipes, func(r recipe) bool { return !strings.Contains(r.name, o.only) })
	return eachOf(o, chosen, func(r recipe) (blockResult, error) {
		return measureBlock(r, r.name[strings.Index(r.name, ", ")+2:], o.verbose)
	})
}

func measureBlock(r recipe, kind string, verbose bool) (blockResult, error) {
	s, err := r.make()
	if err != nil {
		return blockResult{}, err
	}
	ours, err := plumbline(s, taskConfig())
	if err != nil {
		return blockResult{}, err
	}
	changes := ours.published
	often, err := everyThousand(s)
	if err != nil {
		return blockResult{}, err
	}
	out := blockResult{kind: kind, published: len(changes)}
	out.lost = lost(s, changes)
	if out.notOurs, err = notOurs(s, changes); err != nil {
		return out, err
	}
	out.raw, out.rawAcc = served(s, nil)
	out.ours, out.acc = served(s, changes)
	out.followed, _ = served(s, ours.followed)
	out.ts, _ = served(s, often)
	day := judge(s, changes, dayRows, byNLL)
	for i, v := range judge(s, changes, accuracyRows, byAccuracy) {
		out.worse += step(day[i].hurt())
		out.least = min(out.least, v.diff)
		out.hurt += step(v.diff+z95*v.se < -accuracyFalls)
		if verbose {
			fmt.Fprintf(os.Stderr, "%s: row %d, %s, %s: accuracy %+.4f ± %.4f, NLL of the day %+.4f ± %.4f\n",
				s.name, changes[i].row, changes[i].reason, changes[i].method, v.diff, v.se, day[i].diff, day[i].se)
		}
	}
	return out, nil
}

// served is the mean NLL and the accuracy of a stream under a policy.
func served(s *stream, changes []change) (nll, acc float64) {
	z, p := make([]float64, s.k), make([]float64, s.k)
	var cal calibrator.Calibrator
	for i := range s.rows() {
		for len(changes) > 0 && changes[0].row <= i {
			cal, changes = changes[0].cal, changes[1:]
		}
		l, _, hit := apply(s, i, cal, z, p)
		nll, acc = nll+l, acc+float64(step(hit))
	}
	n := float64(s.rows())
	return nll / n, acc / n
}

// everyThousand is the simple rival: a temperature of the latest 1,000 rows, every 1,000 rows.
func everyThousand(s *stream) (out []change, err error) {
	const rows = 1000
	for end := rows; end < s.rows(); end += rows {
		c, err := fitted("temperature", s, end-rows, end)
		if err != nil {
			return nil, err
		}
		out = append(out, change{end, c, "temperature", "schedule", false})
	}
	return out, nil
}

// renderBlocks writes a table of the means by kind of stream, and the bars.
func renderBlocks(title string, all []blockResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| streams in blocks of classes, %s: mean of %d nets | published | lower accuracy | most "+
		"| NLL of the day after worse | NLL raw | served | with `refit.follow` "+
		"| a temperature every 1,000 rows | accuracy raw | served |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|\n", title, blockNetsOfSet)
	published, hurt, worse, worst, most, not := 0, 0, 0, math.Inf(-1), toRaw{}, unavoidable{}
	var kinds []string
	byKind := map[string][]blockResult{}
	for _, r := range all {
		if byKind[r.kind] == nil {
			kinds = append(kinds, r.kind)
		}
		byKind[r.kind] = append(byKind[r.kind], r)
		published, hurt, worse = published+r.published, hurt+r.hurt, worse+r.worse
		worst = max(worst, r.ours-r.raw)
		most.add(r.lost)
		not.add(r.notOurs)
	}
	for _, kind := range kinds {
		var m blockResult
		for _, r := range byKind[kind] {
			n := float64(len(byKind[kind]))
			m.published, m.hurt, m.least = m.published+r.published, m.hurt+r.hurt, min(m.least, r.least)
			m.worse += r.worse
			m.raw, m.ours, m.ts = m.raw+r.raw/n, m.ours+r.ours/n, m.ts+r.ts/n
			m.followed += r.followed / n
			m.rawAcc, m.acc = m.rawAcc+r.rawAcc/n, m.acc+r.acc/n
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %+.4f | %d | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f |\n", kind, m.published,
			m.hurt, m.least, m.worse, m.raw, m.ours, m.followed, m.ts, m.rawAcc, m.acc)
	}
	fmt.Fprintf(&b, "\nBars, %s: publications that lower accuracy by more than %g beyond noise on the %d rows after "+
		"them: %d of %d (%s); that raise the NLL of the day after: %d (%s; %v); served NLL of a stream "+
		"at most raw + %g: %+.4f at most (%s); %v.\n", title, accuracyFalls, accuracyRows, hurt, published,
		few(hurt, published), worse, few(worse, published), not, nllRises, worst, met(worst <= nllRises), most)
	return b.String()
}

// few says whether at most 1 % of publications hurt.
func few(hurt, published int) string { return met(float64(hurt) <= .01*float64(published)) }
