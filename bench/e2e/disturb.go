package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// disturbed measures what 100 models that refit every five seconds and readers of page and history do to rows: the same
// streams with and without, in turns.
func disturbed(ctx context.Context, b *bench) (string, error) {
	const models, turns = 100, 2
	c := cell{K: 10, Keys: 1, Batch: 200}
	none := sections + atOnce + "refit:\n  method: none\n"
	all := sections + atOnce + fmt.Sprintf("refit:\n  period: %s\n  min_rows: 500\n", pane)
	waits, err := b.fill(ctx, c, models)
	if err != nil {
		return "", err
	}
	defer waits.remove(context.WithoutCancel(ctx), b.broker)
	var t strings.Builder
	t.WriteString("| turn | with | highest rate, rows/s | processor time, ns a row | at rows/s | calibrated p50 | " +
		"p99 | snapshot p50 | p99 | decisions | answers to readers |\n|" + strings.Repeat("---|", 11) + "\n")
	rate := 0.0
	for turn := range 2 * turns {
		more, with := none, "nothing"
		if turn%2 == 1 {
			more, with = all, "refits, readers"
		}
		d, err := b.drainOf(ctx, waits, more)
		if err != nil {
			return "", err
		}
		if rate == 0 {
			rate = d.rate / 2
		}
		l := &live{models: models, rate: rate, seconds: 15}
		r := &readers{}
		x := settings{interval: time.Second, more: more}
		if turn%2 == 1 {
			x.beside = r.start
		}
		s, err := b.follow(ctx, c, l, x)
		if err != nil {
			return "", err
		}
		var snapshots []arrival
		for _, a := range s.snapshots {
			snapshots = append(snapshots, arrival{l.sentAt(a.of), a.at})
		}
		rows, panes := of(s.steady(l)), of(snapshots)
		fmt.Fprintf(&t, "| %d | %s | %.0f | %.0f | %.0f", turn+1, with, d.rate, d.perRow, rate)
		for _, x := range []latencies{rows, panes} {
			fmt.Fprintf(&t, " | %s | %s", milliseconds(x.quantile(.5)), milliseconds(x.quantile(.99)))
		}
		fmt.Fprintf(&t, " | %d | %d |\n", s.decisions, r.answers.Load())
	}
	return t.String(), nil
}

// readers read what a process shows, over and over.
type readers struct{ answers atomic.Int64 }

// start starts four clients of the API, with the history, and four streams of events.
func (r *readers) start(ctx context.Context, listen string) {
	for i := range 4 {
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				model := modelName((n*4 + i) % 100)
				paths := []string{"models", "snapshots?model=" + model, "alerts", "models/" + model + "/history"}
				for _, path := range paths {
					if _, err := get(ctx, "http://"+listen+"/api/v1/"+path); err == nil {
						r.answers.Add(1)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+"/api/v1/events", nil)
			if err != nil {
				return
			}
			for ctx.Err() == nil {
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
}
