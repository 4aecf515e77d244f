package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/section"
)

// latency measures how long outputs take at half of the highest rate, or what refits and readers of the page do to it.
func latency(b *bench, what string) error {
	measures := map[string]func(context.Context, *bench) (string, error){"quiet": quiet, "refits": disturbed}
	measure, ok := measures[what]
	if !ok {
		return fmt.Errorf("latency %q: allowed are quiet and refits", what)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	before := load()
	text, err := measure(ctx, b)
	text = fmt.Sprintf("%s; %s/%s, %d cores, broker, sender and readers on the same machine; load average %s before, "+
		"%s after.\n\n%s", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		before, load(), text)
	fmt.Print(text)
	if err == nil && os.Getenv("PLUMBLINE_DOCS") != "" {
		err = section.Replace("bench/results/latency.md", what, text)
	}
	return err
}

// load is the machine's load average of a minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// panes are short so that there are many in seconds.
const (
	pane     = 5 * time.Second
	lateness = time.Second
)

var sections = fmt.Sprintf("event_time:\n  pane: %s\n  allowed_lateness: %s\n", pane, lateness) +
	"calibrated:\n  enabled: true\n"

const atOnce = "  at_once: true\n" // of calibrated, the last section

// quiet measures latency at half of the highest rate.
func quiet(ctx context.Context, b *bench) (string, error) {
	var rates, t strings.Builder
	rates.WriteString("| K | highest rate, rows/s | processor time, ns a row | collector |\n|---|---|---|---|\n")
	t.WriteString("| K | rows/s | checkpoints | calibrated p50 | p99 | beyond the checkpoint p50 | p99 | " +
		"snapshot p50 | p99 | alarm p50 | p99 | since the fault p50 | p99 | sender late |\n|" +
		strings.Repeat("---|", 14) + "\n")
	for _, k := range []int{10, 100, 1000} {
		c := cell{K: k, Keys: 1, Batch: min(200, 20_000/k)}
		d, err := b.drain(ctx, c, 20, sections)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&rates, "| %d | %.0f | %.0f | %.1f %% |\n", k, d.rate, d.perRow, 100*d.collector)
		if k > 100 {
			continue
		}
		for _, x := range []settings{
			{interval: 5 * time.Second, more: sections + atOnce},
			{interval: time.Second, more: sections},
		} {
			l := &live{models: 20, rate: d.rate / 2, seconds: 20, fault: 7 * time.Second}
			s, err := b.follow(ctx, c, l, x)
			if err != nil {
				return "", err
			}
			name := x.interval.String()
			if strings.HasSuffix(x.more, atOnce) {
				name += ", at once"
			}
			fmt.Fprintf(&t, "| %d | %.0f | %s | %s | %s |\n", k, l.rate, name, s.cells(l, x), milliseconds(l.behind))
		}
	}
	return rates.String() + "\n" + t.String(), nil
}

// cells are the latencies of a row of the table.
func (s *seen) cells(l *live, x settings) string {
	all, beyond := of(s.steady(l)), latencies(nil)
	if !strings.HasSuffix(x.more, atOnce) {
		beyond = s.beyond(x.interval)
	}
	var snapshots, alarms, faults []arrival
	for _, a := range s.snapshots {
		snapshots = append(snapshots, arrival{l.sentAt(a.of), a.at})
	}
	for i := range l.models {
		if a, ok := s.alarms[modelName(i)]; ok && a.of.After(l.faultOf(i)) {
			alarms = append(alarms, arrival{l.sentAt(a.of), a.at})
			faults = append(faults, arrival{l.sentAt(l.faultOf(i)), a.at})
		}
	}
	var out []string
	for _, x := range []latencies{all, beyond, of(snapshots), of(alarms), of(faults)} {
		for _, q := range []float64{.5, .99} {
			out = append(out, milliseconds(x.quantile(q)))
		}
	}
	return strings.Join(out, " | ")
}

// steady leaves out of the calibrated stream what came while the process began, and what was read after the last rows
// were sent: no other rows lead to its checkpoint.
func (s *seen) steady(l *live) (all []arrival) {
	from, to := l.begun.Add(warm), l.begun.Add(time.Duration(l.seconds*float64(time.Second)))
	for p, as := range s.calibrated {
		s.calibrated[p] = slices.DeleteFunc(as, func(a arrival) bool { return a.at.Before(from) || a.at.After(to) })
		all = append(all, s.calibrated[p]...)
	}
	return all
}

// warm is how long a process has to begin.
const warm = 6 * time.Second

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f ms", float64(d)/1e6)
}

// follow sends a stream as it happens to a process, and watches its outputs until the last alarms can have come.
func (b *bench) follow(ctx context.Context, c cell, l *live, x settings) (*seen, error) {
	var err error
	c.Rows = int64(l.seconds * l.rate)
	if l.stream, err = newStream(ctx, b.broker, c, appendTime); err != nil {
		return nil, err
	}
	defer l.remove(context.WithoutCancel(ctx), b.broker)
	if err := l.encode(); err != nil {
		return nil, err
	}
	p, err := b.start(ctx, l.stream, x)
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	s, wait := watch(watching, b.broker, p.name)
	err = b.ready(ctx, p.listen)
	if err == nil {
		if x.beside != nil {
			x.beside(watching, p.listen)
		}
		err = l.send(ctx, b.broker, false)
	}
	if err == nil {
		time.Sleep(2*x.interval + lateness + time.Second)
	}
	_, err = p.end(err)
	stop()
	return s, errors.Join(err, wait())
}

// ready waits until a process reads.
func (b *bench) ready(ctx context.Context, listen string) error {
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit) && ctx.Err() == nil; {
		if st, err := status(ctx, listen); err == nil && st.Ready {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("not ready after a minute, or interrupted")
}

// drained is what a process needed for a stream that waited for it.
type drainedIn struct{ rate, perRow, collector float64 }

// drain measures the highest rate: a stream waits on the broker.
func (b *bench) drain(ctx context.Context, c cell, models int, more string) (drainedIn, error) {
	l, err := b.fill(ctx, c, models)
	if err != nil {
		return drainedIn{}, err
	}
	defer l.remove(context.WithoutCancel(ctx), b.broker)
	return b.drainOf(ctx, l, more)
}

// fill sends a stream whose event time runs about as fast as it will be read.
func (b *bench) fill(ctx context.Context, c cell, models int) (*live, error) {
	c.Rows = int64(min(200<<20/(4*c.K+idBytes), 1_500_000))
	s, err := newStream(ctx, b.broker, c)
	if err != nil {
		return nil, err
	}
	rate := 6e8 / float64(2000+20*c.K)
	l := &live{stream: s, models: models, rate: rate, seconds: float64(c.Rows) / rate}
	if err := l.encode(); err != nil {
		return nil, err
	}
	err = l.send(ctx, b.broker, true)
	l.messages = nil
	return l, err
}

func (b *bench) drainOf(ctx context.Context, l *live, more string) (d drainedIn, err error) {
	p, err := b.start(ctx, l.stream, settings{interval: time.Second / 2, more: more})
	if err != nil {
		return d, err
	}
	profiling, stop := context.WithCancel(ctx)
	if err = b.ready(ctx, p.listen); err == nil && b.profiles != "" {
		go b.profile(profiling, p.listen, l.stream)
	}
	d.rate, err = b.highest(ctx, p.listen, l)
	stop()
	u, err := p.end(err)
	d.perRow = float64(u.processor.Nanoseconds()) / float64(l.rows)
	d.collector = collected(p.said.String()).Seconds() / u.processor.Seconds()
	return d, err
}

// highest is rows a second of wall time from the first progress that is seen to the last row.
func (b *bench) highest(ctx context.Context, listen string, l *live) (float64, error) {
	var first time.Time
	var had int64
	for limit := time.Now().Add(3 * time.Minute); time.Now().Before(limit) && ctx.Err() == nil; {
		time.Sleep(20 * time.Millisecond)
		st, err := status(ctx, listen)
		if err != nil {
			continue
		}
		n := min(st.Process.Counts.Predictions, st.Process.Counts.Labelled)
		if n > 0 && first.IsZero() {
			first, had = time.Now(), n
		}
		if n >= l.rows {
			return float64(n-had) / time.Since(first).Seconds(), nil
		}
	}
	return 0, errors.New("not drained after 3 minutes, or interrupted")
}

var gcLine = regexp.MustCompile(`(?m)^gc \d+ @.* ms clock, ([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu`)

// collected is the processor time of the garbage collector, what it took of idle cores too.
func collected(said string) (d time.Duration) {
	for _, m := range gcLine.FindAllStringSubmatch(said, -1) {
		for _, x := range m[1:] {
			ms, _ := strconv.ParseFloat(x, 64)
			d += time.Duration(ms * 1e6)
		}
	}
	return d
}
