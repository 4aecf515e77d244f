package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/internal/section"
)

type options struct {
	data, set, only string
	few, workers    int
	verbose, alone  bool
	cache           cache
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", "../shared/data", "`directory` of the shared data")
	flag.StringVar(&o.set, "set", "both",
		"streams: tuned, runs, held, blocks, heal, first, many or rare, these five with -held too; kinds; both: all")
	flag.StringVar(&o.only, "only", "", "streams whose name has this `text`")
	flag.IntVar(&o.few, "few", 1000, "streams of a set")
	flag.IntVar(&o.workers, "workers", 2, "streams at a time")
	flag.IntVar(&paneRows, "pane-rows", paneRows, "rows of a pane")
	flag.BoolVar(&o.verbose, "v", false, "every publication")
	flag.BoolVar(&o.alone, "alone", false, "leave out the other policies")
	folder := flag.String("cache", ".cache/bench/refit", "`directory` of what was measured of other policies")
	fresh := flag.Bool("fresh", false, "measure the other policies anew")
	flag.Parse()
	if !*fresh {
		o.cache = cache(*folder)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "refit:", err)
		os.Exit(1)
	}
}

// setOf is a set of streams and what was measured on them.
type setOf struct {
	name    string
	settled bool // its streams are stationary in the long run
	recipes []recipe
	results []result
}

func run(o options) error {
	if _, err := os.Stat(o.data); err != nil {
		return fmt.Errorf("the shared data is not there: %w", err)
	}
	var sets []*setOf
	lib := &library{dir: o.data}
	for _, s := range []struct {
		name, flag string
		recipes    func(*library) ([]recipe, error)
	}{{"tuned on", "tuned", tuned}, {"tuned on, in runs", "runs", inRuns}, {"held out", "held", heldOut}} {
		if o.set != "both" && o.set != s.flag {
			continue
		}
		recipes, err := s.recipes(lib)
		if err != nil {
			return err
		}
		set := &setOf{name: s.name, settled: s.flag == "runs"}
		for _, r := range recipes {
			if strings.Contains(r.name, o.only) && len(set.recipes) < o.few {
				set.recipes = append(set.recipes, r)
			}
		}
		if err := set.measure(o); err != nil {
			return err
		}
		sets = append(sets, set)
	}
	text := ""
	if len(sets) > 0 {
		text = render(sets)
	}
	for held, title := range []string{"tuned on", "held out"} {
		if o.set == "both" || o.set == "blocks" && held == 0 || o.set == "blocks-held" && held == 1 {
			all, err := measureBlocks(o, held == 1)
			if err != nil {
				return err
			}
			text += renderBlocks(title, all)
		}
	}
	kinds := ""
	for held, title := range []string{"tuned on", "held out"} {
		t, err := measureKinds(o, held, title)
		if err != nil {
			return err
		}
		kinds += t
	}
	fmt.Print(text + kinds)
	if os.Getenv("PLUMBLINE_DOCS") == "" {
		return nil
	}
	const results = "bench/results/refit.md"
	if text != "" {
		if err := section.Replace(results, "refit", text); err != nil {
			return err
		}
	}
	if kinds == "" {
		return nil
	}
	return section.Replace(results, "kinds", kinds)
}

// measureKinds are the sets heal, first, many and rare, "kinds" all of them.
func measureKinds(o options, held int, title string) (text string, err error) {
	suffix := [2]string{"", "-held"}[held]
	if o.set == "both" || o.set == "kinds" || o.set == "heal"+suffix {
		all, err := measureHealing(o, held == 1)
		if err != nil {
			return "", err
		}
		text += renderHealing(title, all)
	}
	for _, s := range []struct {
		set, what string
		of        func(*library, int) ([]*source, []uint64, error)
	}{{"first", "", ofFew}, {"many", ", 100 and 1,000 classes", ofMany}} {
		if o.set != "both" && o.set != "kinds" && o.set != s.set+suffix {
			continue
		}
		all, err := measureFirst(o, s.of, held)
		if err != nil {
			return "", err
		}
		text += renderFirst(title+s.what, all)
	}
	if o.set == "both" || o.set == "kinds" || o.set == "rare"+suffix {
		all, err := measureRare(o, held == 1)
		if err != nil {
			return "", err
		}
		text += renderRare(title, all)
	}
	return text, nil
}

func (s *setOf) measure(o options) error {
	s.results = make([]result, len(s.recipes))
	errs := make([]error, len(s.recipes))
	var wg sync.WaitGroup
	places := make(chan struct{}, max(o.workers, 1))
	for i, r := range s.recipes {
		wg.Go(func() {
			places <- struct{}{}
			s.results[i], errs[i] = s.measureOne(r, o)
			<-places
			if o.verbose {
				fmt.Fprint(os.Stderr, s.results[i].lines())
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// result is one stream under every policy.
type result struct {
	stream   *stream // without its rows
	rows     int
	ours     []change
	day      []verdict // of the rows of the day after each publication
	whole    []verdict // until the next publication
	policies []policy
	lost     toRaw
	notOurs  unavoidable
	raw, top regret // of online Platt scaling on the scores as they are, and on what was published
}

type policy struct {
	Name string `json:"name"`
	scored
}

func (set *setOf) measureOne(r recipe, o options) (result, error) {
	s, err := r.make()
	if err != nil {
		return result{}, err
	}
	out := result{stream: &stream{name: s.name, drifting: s.drifting, k: s.k, changes: s.changes}, rows: s.rows()}
	did, err := plumbline(s, taskConfig())
	if err != nil {
		return out, err
	}
	out.ours = did.published
	out.day, out.whole = judge(s, out.ours, dayRows, byNLL), judge(s, out.ours, s.rows(), byNLL)
	out.lost = lost(s, out.ours)
	if set.settled || !s.drifting {
		if out.notOurs, err = notOurs(s, out.ours); err != nil {
			return out, err
		}
	}
	if out.top, err = online(s, out.ours); err != nil {
		return out, err
	}
	if o.alone {
		out.policies = []policy{{"plumbline", score(s, out.ours)}, {"follow", score(s, did.followed)}}
		return out, nil
	}
	c := o.cache
	p, ok, err := c.get(s)
	if err == nil && !ok {
		if p, err = measurePeers(s); err == nil {
			err = c.put(s, p)
		}
	}
	out.raw = p.Online
	out.policies = append([]policy{{"plumbline", score(s, out.ours)}, {"follow", score(s, did.followed)}},
		p.Policies...)
	return out, err
}

func measurePeers(s *stream) (out peers, err error) {
	if out.Online, err = online(s, nil); err != nil {
		return out, err
	}
	c, err := schedule(s)
	if err != nil {
		return out, err
	}
	out.Policies = append(out.Policies, policy{"schedule", score(s, c)})
	for _, m := range fixedMethods() {
		c, err := fixed(m, s)
		if err != nil {
			return out, err
		}
		out.Policies = append(out.Policies, policy{m, score(s, c)})
	}
	return out, nil
}

// lines are a stream's publications, for people who look for one.
func (r *result) lines() string {
	var b strings.Builder
	if r.stream == nil {
		return ""
	}
	fmt.Fprintf(&b, "%s:", r.stream.name)
	for _, p := range r.policies[:min(4, len(r.policies))] {
		fmt.Fprintf(&b, " %s %.4f", p.Name, p.Excess)
	}
	fmt.Fprintf(&b, "; %v\n", r.lost)
	for i, c := range r.ours {
		v, w := r.day[i], r.whole[i]
		mark := ""
		if v.hurt() {
			mark = " HURT"
			if r.stream.changesIn(c.row, c.row+v.rows) {
				mark += " by a change"
			}
		}
		fmt.Fprintf(&b, "  row %d %s %s: NLL %+.5f ± %.5f on %d rows, %+.5f on %d%s\n", c.row, c.reason, c.method,
			v.diff, v.se, v.rows, w.diff, w.rows, mark)
	}
	return b.String()
}
