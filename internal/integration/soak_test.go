//go:build integration

package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	soakBurst = 10 // times the steady rate
	soakDelay = 3 * time.Minute
	soakEvery = 5 * time.Second

	// What "flat" is. Resident memory is what Go has taken from the system: between two collections it moves by a fifth
	// or so, which a median over a third of the run does not see and a slope hardly. The lag must be back by the time
	// that the last label of the burst has come.
	soakMemoryGrowth = 0.10 // of the median, by the slope over a whole steady stretch
	soakMemoryAfter  = 1.25 // median after the burst over that before
	// a shorter run is for the burst: what fills up slowly still does in its steady stretches.
	soakSteady = 15 * time.Minute
	// difference of the medians; each scrape and connection has one or two of its own.
	soakGoroutines = 3
)

// soakConfig has everything on: slices, windows, rules, refits. What grows until it is full must be full before memory
// is judged: with the defaults, ids that have joined are remembered for hours at this rate. A shorter run has
// all of it smaller, at the same proportions.
func soakConfig(total, delay time.Duration, rate float64) string {
	part := min(1, total.Minutes()/30)
	pane := max(time.Duration(part*10)*time.Second, time.Second)
	rows := func(n, least float64) int { return int(max(n*part*min(1, rate/1000), least)) }
	const text = `
slices: {columns: [cohort]}
event_time: {pane: %v, allowed_lateness: %v}
join: {wait: %v, remember: %d}
sample: {rows: %d}
windows:
  - {name: panes, kind: time, size: %v, slide: %v}
  - {name: last5000, kind: rows, rows: 5000}
refit: {method: temperature, period: %v, min_rows: %d, fresh_rows: %d, max_rows: %d}
`
	return fmt.Sprintf(text, pane, pane,
		delay*4/3, rows(50_000, 1),
		rows(8192, 200),
		12*pane, 6*pane,
		12*pane, rows(500, 50), rows(2000, 100), rows(5000, 200))
}

// soakSample is the process at one moment.
type soakSample struct {
	at         float64 // seconds
	rss, heap  float64 // MB
	goroutines float64
	lag        float64 // rows and labels written and not in a checkpoint
	rate       float64 // rows and labels processed a second, since the sample before
	done       int64
}

// TestSoak runs plumbline at a steady rate, through a ten-fold burst in the middle, and judges memory, goroutines and
// lag. PLUMBLINE_SOAK_MINUTES is its length, PLUMBLINE_SOAK_RATE the steady rate. Run it by `make soak`.
func TestSoak(t *testing.T) {
	minutes := number(t, "PLUMBLINE_SOAK_MINUTES", 0)
	if minutes == 0 {
		t.Skip("takes long: set PLUMBLINE_SOAK_MINUTES, at least 3")
	}
	rate := number(t, "PLUMBLINE_SOAK_RATE", 1000)
	total := time.Duration(minutes * float64(time.Minute))
	burst, delay := phase{soakBurst * rate, total / 15}, min(soakDelay, total/10)
	s := configureEdited(t, soakConfig(total, delay, rate), "interval: 500ms", "interval: 5s")
	begin := time.Now()
	pm := newPump(t, s, plan{begin, []phase{{rate, total / 2}, burst, {rate, total}}}, delay, soakModels(t))
	p := run(t, s)
	ctx, stop := context.WithTimeout(context.Background(), total)
	defer stop()
	var wg sync.WaitGroup
	w := &written{}
	wg.Go(func() { pm.follow(ctx, func(int64) { w.note(pm.rows + pm.labels) }) })
	samples := sampleSoak(ctx, t, p, w, begin)
	wg.Wait()
	pm.finish()
	st := p.drain(pm.rows, pm.labels)
	p.stop()
	if c := st.Counts; c.Predictions != pm.rows || c.Labels != pm.labels || c.Joined != pm.rows ||
		c.Expired+c.Evicted+c.Duplicates != 0 {
		t.Errorf("got counts %+v, want %d rows and %d labels, all joined", c, pm.rows, pm.labels)
	}
	judged := judgeSoak(t, samples, total, burst)
	text := fmt.Sprintf("%s; %s/%s, %d cores, %s, broker and writer on the same machine, "+
		"which others used too (load average %s at the end). %.0f minutes; %d rows and as many labels.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuName(),
		loadAverage(), minutes, pm.rows, judged)
	t.Logf("%s", text)
	file := filepath.Join(t.TempDir(), "soak.svg")
	if os.Getenv("PLUMBLINE_DOCS") == "1" && !t.Failed() {
		file = filepath.Join(root, "docs", "img", "soak.svg")
	}
	drawSoak(t, file, samples, total/2, burst.span)
	if !t.Failed() {
		writeSection(t, "soak", text)
	}
}

// loadAverage is that of the last 15 minutes: how busy a shared machine was.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(text)); len(f) > 2 {
		return f[2]
	}
	return "unknown"
}

func number(t *testing.T, name string, otherwise float64) float64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return v
}

// soakModels are three nets of K = 10 and one of K = 100, with five cohorts each.
func soakModels(t *testing.T) (models []liveModel) {
	for _, net := range []string{"resnet20", "mobilenetv2_x1_0", "vgg16_bn"} {
		models = append(models, liveModel{"c10-" + net, "1", loadRows(t, "c10_chenyaofo19_logits.npz", net, 10),
			cohorts(5)})
	}
	return append(models, liveModel{"c100-resnet56", "1", loadRows(t, "c100_chenyaofo_logits.npz", "resnet56", 100),
		cohorts(5)})
}

// sampleSoak takes a sample every soakEvery until ctx is done.
func sampleSoak(ctx context.Context, t *testing.T, p *process, w *written, begin time.Time) (out []soakSample) {
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return out
		case err := <-p.done:
			t.Fatalf("plumbline run ended: %v\n%s", err, p.tail())
		case <-tick.C:
		}
		st, err := p.status()
		if err != nil { // busy: the next sample will tell
			t.Logf("after %v: %v", time.Since(begin).Round(time.Second), err)
			continue
		}
		x := soakSample{at: time.Since(begin).Seconds(), done: st.Counts.Predictions + st.Counts.Labels,
			rss: residentMB(t, p.cmd.Process.Pid)}
		x.lag = float64(w.total() - x.done)
		metrics := scrape(t, p)
		x.heap, x.goroutines = metrics["go_memstats_heap_inuse_bytes"]/1e6, metrics["go_goroutines"]
		if n := len(out); n > 0 {
			x.rate = float64(x.done-out[n-1].done) / (x.at - out[n-1].at)
		}
		out = append(out, x)
		if len(out)%12 == 0 {
			t.Logf("%+v; the writer was late by %v at most", x, w.late())
		}
	}
}

// residentMB is VmRSS.
func residentMB(t *testing.T, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kb float64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatalf("VmRSS in %q: %v", text, err)
	}
	return kb * 1024 / 1e6
}

// scrape reads the metrics that have no labels.
func scrape(t *testing.T, p *process) map[string]float64 {
	out := map[string]float64{}
	resp, err := http.Get("http://" + p.s.listen + "/metrics")
	if err != nil {
		t.Errorf("scrape: %v", err)
		return out
	}
	defer resp.Body.Close()
	sc := bufio.NewScanner(io.LimitReader(resp.Body, 64<<20))
	for sc.Scan() {
		name, value, _ := strings.Cut(sc.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = v
		}
	}
	return out
}

// judgeSoak checks the samples and returns what they tell as a table.
func judgeSoak(t *testing.T, all []soakSample, total time.Duration, burst phase) string {
	t.Helper()
	from, to := (total / 2).Seconds(), (total/2 + burst.span).Seconds()
	// The first quarter fills windows, samples and the ids that are remembered.
	before := between(all, total.Seconds()/4, from)
	lag := func(x soakSample) float64 { return x.lag }
	steady := quantile(before, lag, 1)
	recovered := -1.0
	for _, x := range between(all, to, total.Seconds()) {
		if x.lag <= steady {
			recovered = x.at - to
			break
		}
	}
	delay := min(soakDelay, total/10)
	if most := burst.span + delay; recovered < 0 || recovered > most.Seconds() {
		t.Errorf("lag: %.0f at most before the burst, again %.0f s after it (-1: never), want at most %v", steady,
			recovered, most)
		recovered = max(recovered, 0)
	}
	// Labels of the burst come for as long as labels take, and its rows stay in windows for as long again.
	after := between(all, min(to+recovered+2*delay.Seconds(), total.Seconds()*0.75), total.Seconds())
	var b strings.Builder
	b.WriteString("| | before the burst | in it | after it |\n|---|---|---|---|\n")
	during := between(all, from, to)
	row := func(name, format string, of func(soakSample) float64) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, xs := range [][]soakSample{before, during, after} {
			fmt.Fprintf(&b, " "+format+" (%.0f) |", quantile(xs, of, 0.5), quantile(xs, of, 1))
		}
		b.WriteString("\n")
	}
	rss, goroutines := func(x soakSample) float64 { return x.rss }, func(x soakSample) float64 { return x.goroutines }
	row("rows and labels a second, median (most)", "%.0f", func(x soakSample) float64 { return x.rate })
	row("lag in rows and labels", "%.0f", lag)
	row("resident memory, MB", "%.0f", rss)
	row("heap in use, MB", "%.0f", func(x soakSample) float64 { return x.heap })
	row("goroutines", "%.0f", goroutines)
	for name, xs := range map[string][]soakSample{"before": before, "after": after} {
		if g := growth(xs, rss) / quantile(xs, rss, 0.5); g > soakMemoryGrowth && total >= soakSteady {
			t.Errorf("resident memory grows by %.1f %% of its median in the steady stretch %s the burst, "+
				"allowed are %.0f %%", 100*g, name, 100*soakMemoryGrowth)
		}
	}
	if a, z := quantile(before, rss, 0.5), quantile(after, rss, 0.5); z > soakMemoryAfter*a {
		t.Errorf("resident memory: %.0f MB before the burst and %.0f MB after it, allowed are %.2f times as much", a, z,
			soakMemoryAfter)
	}
	if a, z := quantile(before, goroutines, 0.5), quantile(after, goroutines, 0.5); z > a+soakGoroutines {
		t.Errorf("goroutines: %.0f before the burst and %.0f after it, allowed are %d more", a, z, soakGoroutines)
	}
	fmt.Fprintf(&b, "\nThe lag was back at what it had been %.0f s after the end of the burst of %.0f s. "+
		"By its slope (Theil-Sen), resident memory changed by %+.1f MB in the %.0f s before the burst "+
		"and by %+.1f MB in the last %.0f s.\n",
		recovered, burst.span.Seconds(), growth(before, rss), span(before), growth(after, rss), span(after))
	return b.String()
}

func between(all []soakSample, from, to float64) (out []soakSample) {
	for _, x := range all {
		if x.at >= from && x.at < to {
			out = append(out, x)
		}
	}
	return out
}

// quantile of no samples is 0.
func quantile(xs []soakSample, of func(soakSample) float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	var vs []float64
	for _, x := range xs {
		vs = append(vs, of(x))
	}
	slices.Sort(vs)
	return vs[int(q*float64(len(vs)-1))]
}

func span(xs []soakSample) float64 {
	if len(xs) == 0 {
		return 0
	}
	return xs[len(xs)-1].at - xs[0].at
}

// growth is the median slope over all pairs of samples, times the time that they span (Theil-Sen).
func growth(xs []soakSample, of func(soakSample) float64) float64 {
	var slopes []float64
	for i := range xs {
		for j := range i {
			slopes = append(slopes, (of(xs[i])-of(xs[j]))/(xs[i].at-xs[j].at))
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2] * span(xs)
}
