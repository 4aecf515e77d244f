package cuda

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/trainer/backend/conformance"
)

var (
	everyMutant = flag.Int("mutants", 0, "of so many changes of the PTX try one; 0: none")
	mutantSeed  = flag.Uint64("mutant-seed", 1, "seed of their order, which decides which are tried")
	mutantTime  = flag.Duration("mutant-time", time.Hour, "begin no other change after this `time`")
	mutantTable = flag.String("mutant-table", "", "file for the table of TestMutants")
	mutantOnly  = flag.String("mutant-only", "", "only changes whose text, as the table has it, matches this")
)

// How an instruction is changed: the numbers of testdata/fakecuda/ptx.h.
const (
	changed  = 1 + iota // fma subtracts, setp is the opposite, ld and st are one number further
	removed             // fma is its third operand, setp is false, bar, ld and st are not there
	boundary            // < of setp is <=, <= is <
)

var howNames = map[int]string{changed: "changed", removed: "removed", boundary: "boundary"}

// mutant is one changed instruction of the image.
type mutant struct {
	line, how    int
	class        string
	kernel, text string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s line %d %s: %s", m.kernel, m.line, howNames[m.how], m.text)
}

var (
	instructionLine = regexp.MustCompile(`^\t(?:@!?%p\d+ )?(fma|setp|bar|ld|st|atom)\.([\w.]+)`)
	functionLine    = regexp.MustCompile(`^\.(?:visible \.entry|func .*\)) (\w+)`)
)

// mutants are all changes of fma, setp, bar, ld and st. Parameters are no memory.
func mutants() []mutant {
	var all []mutant
	kernel := ""
	for i, text := range strings.Split(image, "\n") {
		if m := functionLine.FindStringSubmatch(text); m != nil {
			kernel = m[1]
		}
		m := instructionLine.FindStringSubmatch(text)
		if m == nil || strings.HasPrefix(m[2], "param") {
			continue
		}
		class := m[1]
		if class == "atom" {
			class = "st"
		}
		for _, how := range map[string][]int{
			"fma": {changed, removed}, "setp": {changed, removed, boundary}, "bar": {removed},
			"ld": {changed, removed}, "st": {changed, removed},
		}[class] {
			all = append(all, mutant{i + 1, how, class, kernel, strings.TrimSpace(text)})
		}
	}
	return all
}

// mutantChecks are the checks of this package's tests that reach kernels, as they are for a whole head.
func mutantChecks() []check {
	all := kernelChecks()
	for _, text := range lossTexts {
		all = append(all, check{"loss " + text, func() error {
			return agree(&Backend{BLAS: OwnKernels}, lossProblem(text), epochOf(90, 32))
		}})
	}
	for _, text := range tiedTexts {
		all = append(all, check{"ties " + text, func() error {
			return agree(&Backend{BLAS: OwnKernels}, tied(text), epochOf(24, 24))
		}})
	}
	for _, text := range []string{"ce", "au", "crl"} {
		all = append(all, check{"diverged " + text, func() error { return diverges(text) }})
	}
	all = append(all, check{"stream's CDF", streamCDF})
	for _, c := range conformance.Cases() {
		if fused, err := compile(c.Problem.Losses[0]); err != nil || !fused.fused {
			continue
		}
		all = append(all, check{"conformance " + c.Name, func() error {
			return conformance.CheckCase(c, &Backend{BLAS: OwnKernels}, tolerance)
		}})
	}
	for _, s := range shapes() {
		all = append(all, check{"shape " + s.name, func() error {
			return agree(&Backend{FeatureBytes: -1, BLAS: OwnKernels}, s.p, s.epochs...)
		}})
	}
	return all
}

// reach is what a check runs of the PTX, and how long it takes.
type reach struct {
	check
	lines []byte
	took  time.Duration
}

// TestMutants changes instructions of the PTX, one at a time, and runs the checks that reach it until one fails.
func TestMutants(t *testing.T) {
	if *everyMutant == 0 {
		t.Skip("not asked for: -mutants 1 tries all, make ptx-mutants")
	}
	s := needStand(t)
	checks := reached(t, s)
	var tried, caught = map[string]int{}, map[string]int{}
	chosen := regexp.MustCompile(*mutantOnly)
	var missed []string
	start := time.Now()
	all := slices.DeleteFunc(mutants(), func(m mutant) bool { return !chosen.MatchString(m.String()) })
	rand.New(rand.NewPCG(*mutantSeed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, m := range all[:(len(all)+*everyMutant-1) / *everyMutant] {
		if time.Since(start) > *mutantTime {
			break
		}
		key := m.class + " " + howNames[m.how]
		tried[key]++
		if s.catches(t, checks, m) {
			caught[key]++
		} else {
			missed = append(missed, m.String())
			t.Logf("not noticed: %s", m)
		}
	}
	table(t, tried, caught, missed, time.Since(start))
}

// reached runs the checks on the PTX as it is, and sorts them by time.
func reached(t *testing.T, s *stand) []reach {
	t.Helper()
	all := make([]byte, strings.Count(image, "\n")+1)
	var out []reach
	for _, c := range mutantChecks() {
		lines := make([]byte, len(all))
		s.Reached(&lines[0], int64(len(lines)))
		start := time.Now()
		if err := c.run(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := reach{c, lines, time.Since(start)}
		s.Reached(&lines[0], int64(len(lines)))
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b reach) int { return int(a.took - b.took) })
	return out
}

// catches says whether a check fails for a mutant. The one that does comes first for the next mutant.
func (s *stand) catches(t *testing.T, checks []reach, m mutant) bool {
	t.Helper()
	defer s.Set("mutant", 0)
	for i, c := range checks {
		if c.lines[m.line] == 0 {
			continue
		}
		s.Set("mutant", int64(m.line))
		s.Set("how", int64(m.how))
		err := c.run()
		s.Set("mutant", 0)
		if err == nil {
			continue
		}
		// What is broken must be the instruction, and nothing that an earlier one has left behind.
		if n := s.Get("allocations"); n != 0 {
			t.Fatalf("%s: %d allocations left behind: %v", c.name, n, err)
		}
		copy(checks[1:i+1], checks[:i])
		checks[0] = c
		return true
	}
	return false
}

// least is the part of the instructions, changed or removed, that must be noticed. Boundaries of comparisons are
// counted beside them: where equal is the largest that can be, or an index that nothing reads, a moved one is the same
// program.
const least = 0.95

func table(t *testing.T, tried, caught map[string]int, missed []string, took time.Duration) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| Change | Tried | Caught |\n|---|--:|--:|\n")
	var all, found, must, noticed int
	for _, class := range []string{"fma", "setp", "bar", "ld", "st"} {
		for how := changed; how <= boundary; how++ {
			if key := class + " " + howNames[how]; tried[key] > 0 {
				fmt.Fprintf(&b, "| %s | %d | %d |\n", key, tried[key], caught[key])
				all, found = all+tried[key], found+caught[key]
				if how != boundary {
					must, noticed = must+tried[key], noticed+caught[key]
				}
			}
		}
	}
	fmt.Fprintf(&b, "| All | %d | %d (%.1f %%) |\n", all, found, 100*float64(found)/float64(all))
	part := 100 * float64(noticed) / float64(must)
	fmt.Fprintf(&b, "| Without boundaries | %d | %d (%.1f %%) |\n", must, noticed, part)
	t.Logf("%d changes in %.0f s\n%s", all, took.Seconds(), &b)
	if float64(noticed) < least*float64(must) {
		t.Errorf("%d of %d changes caught, want %g %%", noticed, must, 100*least)
	}
	if *mutantTable == "" {
		return
	}
	if len(missed) > 0 {
		fmt.Fprintf(&b, "\nNot caught:\n\n- %s\n", strings.Join(missed, "\n- "))
	}
	if err := os.WriteFile(*mutantTable, []byte(b.String()), 0o600); err != nil {
		t.Error(err)
	}
}
