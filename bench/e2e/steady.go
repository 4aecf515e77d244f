package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// steady measures the cores of a process while rows come as they happen. Each point is K, rows a second, slices of each
// model, models, and "inline", "keyed" or both, such as 10/2000/20/1/inline+keyed.
func steady(b *bench, points string, delay, length time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Println("classes,labels,keys,models,topics,rate,batch,delay,cores")
	for _, text := range strings.Split(points, ",") {
		p, err := parsePoint(text)
		if err != nil {
			return err
		}
		p.delay = delay
		if p.Inline {
			p.delay = 0
		}
		if err := b.steady(ctx, p, length); err != nil {
			return err
		}
	}
	return nil
}

// point is a load whose cores are measured.
type point struct {
	cell
	rate   float64
	models int
	keyed  bool
	delay  time.Duration
}

func parsePoint(text string) (p point, err error) {
	var slices int
	var how string
	n, err := fmt.Sscanf(strings.ReplaceAll(text, "/", " "), "%d %g %d %d %s", &p.K, &p.rate, &slices, &p.models, &how)
	if n < 4 {
		return p, fmt.Errorf("point %q: %w", text, err)
	}
	p.Keys, p.Batch = max(1, slices), 1000
	p.Inline, p.keyed = strings.Contains(how, "inline"), strings.Contains(how, "keyed")
	return p, nil
}

func (p *point) profile() string {
	return fmt.Sprintf("%s-%gps-m%d-%t", p.name(), p.rate, p.models, p.keyed)
}

// warmUp is how long a process has until its cores are measured: windows of ten minutes are not full by then.
const warmUp = 45 * time.Second

func (b *bench) steady(ctx context.Context, p point, length time.Duration) (err error) {
	l := &live{models: p.models, rate: p.rate, delay: p.delay,
		seconds: (warmUp + p.delay + length).Seconds() + 5}
	p.Rows = int64(l.seconds * l.rate)
	if l.stream, err = newStream(ctx, b.broker, p.cell); err != nil {
		return err
	}
	defer l.remove(context.WithoutCancel(ctx), b.broker)
	if err := l.encode(); err != nil {
		return err
	}
	run, err := b.start(ctx, l.stream, settings{unkeyed: !p.keyed})
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	var took, wall time.Duration
	if err = b.ready(ctx, run.listen); err == nil {
		go func() { sent <- l.send(ctx, b.broker, false) }()
		time.Sleep(warmUp + p.delay)
		was, at := processorTime(run.cmd.Process.Pid), time.Now()
		if b.profiles != "" {
			err = b.profileOf(ctx, run.listen, p.profile(), length)
		} else {
			time.Sleep(length)
		}
		took, wall = processorTime(run.cmd.Process.Pid)-was, time.Since(at)
		err = errors.Join(err, <-sent)
	}
	if _, err = run.end(err); err != nil {
		return err
	}
	topics, labels := "any", "joined"
	if p.keyed {
		topics = "keyed"
	}
	if p.Inline {
		labels = "inline"
	}
	fmt.Printf("%d,%s,%d,%d,%s,%g,%.0f,%g,%.4f\n", p.K, labels, p.Keys, p.models, topics, p.rate,
		float64(l.rows)/float64(l.count[l.topic("logits")]), p.delay.Seconds(), took.Seconds()/wall.Seconds())
	return nil
}

// processorTime is what a process has taken, user and system.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, s := range f[11:13] {
		n, _ := strconv.ParseInt(s, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
