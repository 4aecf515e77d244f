// Command refit measures what refits do on 20 drifting and 20 stationary streams of real logits: how often one is
// published, whether it helps or hurts on the rows that follow, and the calibration error over the stream beside that of a
// fixed schedule and of every calibrator fitted once. It reads the shared data (../shared/data), and says so where that is
// absent. PLUMBLINE_DOCS=1 writes the tables to docs/benchmarks.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
)

func main() {
	data := flag.String("data", "../shared/data", "`directory` of the shared data")
	few := flag.Int("few", 20, "streams of each kind")
	verbose := flag.Bool("v", false, "every publication")
	flag.Parse()
	if err := run(*data, *few, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "refit:", err)
		os.Exit(1)
	}
}

func run(data string, few int, verbose bool) error {
	if _, err := os.Stat(data); err != nil {
		return fmt.Errorf("the shared data is not there: %w", err)
	}
	drift, err := drifting(data)
	if err != nil {
		return err
	}
	still, err := stationary(data)
	if err != nil {
		return err
	}
	all := append(drift[:min(few, len(drift))], still[:min(few, len(still))]...)
	results := make([]result, len(all))
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	places := make(chan struct{}, 2)
	for i, s := range all {
		wg.Go(func() {
			places <- struct{}{}
			results[i], errs[i] = measure(s)
			<-places
			if verbose {
				fmt.Fprint(os.Stderr, results[i].lines())
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	text := render(results)
	fmt.Print(text)
	if os.Getenv("PLUMBLINE_DOCS") == "" {
		return nil
	}
	return writeSection("docs/benchmarks.md", "refit", text)
}

// result is one stream under every policy.
type result struct {
	stream   *stream
	ours     []change
	day      []verdict // of the rows of the day after each publication
	whole    []verdict // until the next publication
	policies []policy
}

type policy struct {
	name string
	scored
}

func measure(s *stream) (result, error) {
	out := result{stream: s}
	var err error
	if out.ours, err = plumbline(s, taskConfig()); err != nil {
		return out, err
	}
	out.day, out.whole = judge(s, out.ours, dayRows), judge(s, out.ours, s.rows())
	out.policies = append(out.policies, policy{"plumbline", score(s, out.ours)})
	c, err := schedule(s)
	if err != nil {
		return out, err
	}
	out.policies = append(out.policies, policy{"schedule", score(s, c)})
	for _, m := range fixedMethods() {
		c, err := fixed(m, s)
		if err != nil {
			return out, err
		}
		out.policies = append(out.policies, policy{m, score(s, c)})
	}
	return out, nil
}

// lines are a stream's publications, for people who look for one.
func (r *result) lines() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", r.stream.name)
	for _, p := range r.policies[:min(4, len(r.policies))] {
		fmt.Fprintf(&b, " %s %.4f", p.name, p.excess)
	}
	b.WriteString("\n")
	for i, c := range r.ours {
		v, w := r.day[i], r.whole[i]
		fmt.Fprintf(&b, "  row %d %s %s: NLL %+.5f ± %.5f on %d rows, %+.5f on %d\n", c.row, c.reason, c.method, v.diff, v.se, v.rows, w.diff, w.rows)
	}
	return b.String()
}

// writeSection puts text between the markers of that name.
func writeSection(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no section %q", path, name)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o600)
}
