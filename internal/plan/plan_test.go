package plan

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
)

// point is a measured stream: processor time of the whole process a row, start-up apart.
type point struct {
	load   Load
	rows   float64
	ns     float64
	fitted bool
}

// eventRate is that of the streams: rows of all keys in a second of event time.
const eventRate = 20_000

// lines are those of a file after its head.
func lines(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[1:]
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func points(t *testing.T) []point {
	t.Helper()
	var out []point
	for _, l := range lines(t, "testdata/points.csv") {
		keys := int(number(t, l[2]))
		if keys == 1 { // no slice column
			keys = 0
		}
		out = append(out, point{Load{Rows: eventRate, Classes: int(number(t, l[0])), Inline: l[1] == "inline",
			Keys: keys, Models: 1, Batch: int(number(t, l[3]))}, number(t, l[4]), number(t, l[5]), l[6] == "fitted"})
	}
	return out
}

// panes that end within a stream, whose labels come up to two seconds late.
func (p *point) panes() float64 {
	seconds := p.rows / eventRate
	if !p.load.Inline {
		seconds += 2
	}
	return math.Ceil(seconds / 10)
}

// TestMeasuredPoints: the formula gives the processor time of streams that it was not fitted on within 25 %.
func TestMeasuredPoints(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range points(t) {
		keys := float64(p.load.Keys + 1)
		got := RowTime(p.load) + KeyTime(p.load, eventRate*10/keys)*keys*p.panes()/p.rows
		off, limit := got/p.ns-1, .25
		if p.fitted {
			limit = .1
		} else {
			checked++
		}
		if math.Abs(off) > limit {
			t.Errorf("%+v: %.0f ns a row, measured %.0f: %+.0f %%", p.load, got, p.ns, 100*off)
		}
		t.Logf("| %d | %t | %d | %d | %.0f | %.0f | %+.0f %% | %t |", p.load.Classes, p.load.Inline, p.load.Keys,
			p.load.Batch, p.ns, got, 100*off, p.fitted)
	}
	if checked < 6 {
		t.Errorf("%d points are checked, want six", checked)
	}
}

// TestSteadyPoints: the plan gives the cores of processes whose rows come as they happen, at low rates, within 25 %
// where it was not fitted on them.
func TestSteadyPoints(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, x := range lines(t, "testdata/steady.csv") {
		l := Load{Classes: int(number(t, x[0])), Inline: x[1] == "inline", Models: int(number(t, x[3])),
			Rows: number(t, x[5]), Batch: int(number(t, x[6])), Delay: time.Duration(number(t, x[7])) * time.Second}
		if x[2] != "1" { // values of a slice column, of each model
			l.Keys = int(number(t, x[2])) * l.Models
		}
		c := config.Default()
		c.Topics.Keyed = x[4] == "keyed"
		p, err := New(l, &c)
		if err != nil {
			t.Fatal(err)
		}
		cores := number(t, x[8])
		off := p.Cores/cores - 1
		if x[9] == "checked" {
			checked++
			if math.Abs(off) > .25 {
				t.Errorf("%v: %.3f cores, measured %.3f: %+.0f %%", x, p.Cores, cores, 100*off)
			}
		}
		t.Logf("| %s | %s | %d | %d | %s | %.0f | %d | %s | %.3f | %.3f | %+.0f %% | %s |", x[0], x[1], l.Keys,
			l.Models, x[4], l.Rows, l.Batch, x[7], cores, p.Cores, 100*off, x[9])
	}
	if checked < 6 {
		t.Errorf("%d points are checked, want six", checked)
	}
}

// TestAdvice: asked again with the configuration that it advises, the plan is the same.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for _, l := range []Load{
		{Rows: 100, Classes: 10, Models: 1, Batch: 1000, Delay: time.Minute},
		{Rows: 2000, Classes: 1000, Keys: 2000, Models: 3, Batch: 100, Delay: 3 * time.Hour},
		{Rows: 1e6, Classes: 100, Keys: 100, Models: 1, Batch: 1000, Delay: time.Second},
		{Rows: 500, Classes: 2, Models: 1, Batch: 10, Inline: true},
	} {
		c := config.Default()
		p, err := New(l, &c)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = config.Parse([]byte(p.Config), "plan"); err != nil {
			t.Fatal(err)
		}
		again, err := New(l, &c)
		if err != nil {
			t.Fatal(err)
		}
		if again.Config = p.Config; !reflect.DeepEqual(p, again) {
			t.Errorf("with the advised configuration\n%+v\nwant\n%+v", again, p)
		}
	}
}

// TestModelsAtOnce: the advised configuration takes all models at once, and an old version beside each.
func TestModelsAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ models, most, perMinute int }{
		{300, 1000, 30}, {400, 1000, 40}, {600, 1200, 60}, {10_001, 20_002, 1001}, {600_000, 0, 60_000},
	} {
		c := config.Default()
		p, err := New(Load{Rows: 100, Classes: 10, Models: test.models, Batch: 10}, &c)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = config.Parse([]byte(p.Config), "plan"); err != nil {
			t.Fatal(err)
		}
		if v := c.Versions; v.Max != test.most || v.NewPerMinute != test.perMinute {
			t.Errorf("%d models: got %+v, want %d and %d", test.models, v, test.most, test.perMinute)
		}
	}
}

// TestConfigurationCounts: what a file says of labels and partitions is not asked for once more.
func TestConfigurationCounts(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Topics.Labels, c.Kafka.Partitions = "", 12
	p, err := New(Load{Rows: 100, Classes: 10, Models: 1, Batch: 10}, &c)
	if err != nil || !p.Load.Inline || p.Partitions != 12 {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestSmallNumbersAreShown: a low rate does not take 0 cores.
func TestSmallNumbersAreShown(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{.0284: "0.028", .1: "0.1", 7.9e-5: "below 0.001", 1.26: "1.3", 23.4: "23"} {
		if got := coresText(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

// TestMemoryOfTheExample: the rates of `make example-memory`, which takes 1.0 GB in use of cells, waiting rows, windows
// and page; the plan has fetches, outputs and remembered ids beside them.
func TestMemoryOfTheExample(t *testing.T) {
	t.Parallel()
	c := config.Default()
	p, err := New(Load{Rows: 20_000, Classes: 10, Keys: 20, Models: 1, Delay: 10 * time.Minute, Batch: 1000}, &c)
	if err != nil {
		t.Fatal(err)
	}
	beside := 4*float64(outputBytes) + 4*4*float64(c.Kafka.FetchMax) + 4e6*rememberBytes + 4*2*float64(c.Kafka.FetchMax)
	if in := p.Shards + p.Tasks - beside; math.Abs(in/1.0e9-1) > .25 {
		t.Errorf("%.2f GB in use, the example takes 1.0 GB", in/1e9)
	}
	if p.Partitions != 4 || p.Waiting != 12e6 || p.Provision < 1 {
		t.Errorf("got %+v", p)
	}
}

// TestPlansGrow: more of anything never takes less.
func TestPlansGrow(t *testing.T) {
	t.Parallel()
	c := config.Default()
	base := Load{Rows: 5000, Classes: 20, Keys: 10, Models: 2, Delay: time.Minute, Batch: 100}
	of := func(l Load) *Plan {
		p, err := New(l, &c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse([]byte(p.Config), "plan"); err != nil {
			t.Errorf("the configuration is not valid: %v\n%s", err, p.Config)
		}
		return p
	}
	was := of(base)
	for name, change := range map[string]func(*Load){
		"rows":    func(l *Load) { l.Rows *= 50 },
		"classes": func(l *Load) { l.Classes *= 20 },
		"keys":    func(l *Load) { l.Keys *= 1000 },
		"models":  func(l *Load) { l.Models *= 10 },
		"delay":   func(l *Load) { l.Delay *= 600 },
	} {
		more := base
		change(&more)
		p := of(more)
		if p.Cores < was.Cores || p.Memory < was.Memory || p.Disk < was.Disk || p.Topics[0].Day < was.Topics[0].Day {
			t.Errorf("more %s takes less: %+v, was %+v", name, p, was)
		}
	}
}

func TestImpossibleLoads(t *testing.T) {
	t.Parallel()
	for _, l := range []Load{
		{Classes: 10, Models: 1, Batch: 1},
		{Rows: math.NaN(), Classes: 10, Models: 1, Batch: 1},
		{Rows: 1, Classes: 1, Models: 1, Batch: 1},
		{Rows: 1, Classes: 10, Models: 1, Batch: 0},
		{Rows: 1, Classes: 10, Models: 1, Batch: 1, Keys: 9e18},
		{Rows: 1, Classes: 10, Models: 1, Batch: 1, Inline: true, Delay: 1},
	} {
		if l.Check() == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

// TestBuckets: the plan has the table of bench/results/buckets.md.
func TestBuckets(t *testing.T) {
	text, err := os.ReadFile("../../bench/results/buckets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range buckets {
		row := fmt.Sprintf("| K = %.0f |", b.classes)
		for _, p := range b.kb {
			row += fmt.Sprintf(" %v |", p.y)
			if p.y == math.Trunc(p.y) && p.y < 10 {
				row = strings.TrimSuffix(row, " |") + ".0 |"
			}
		}
		if !strings.Contains(string(text), row+"\n") {
			t.Errorf("bench/results/buckets.md does not have %q", row)
		}
	}
}
