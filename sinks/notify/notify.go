package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// States of an alert.
const (
	firing    = "firing"
	resolved  = "resolved"
	inhibited = "inhibited" // not a state of its own in records: another alert or a calibrator stands for it
)

// stateOf is what a notifier takes an alert for.
func stateOf(a *record.Alert) string {
	if a.InhibitedBy != "" {
		return inhibited
	}
	return a.State
}

// Options are a configuration with what the process adds to it.
type Options struct {
	Config
	Hooks []Webhook // Config.Webhooks, with their addresses and secrets
	// History says that the API there has the history, which alerts then link to for their evidence.
	History bool
	// KeepResolved is how long Alertmanagers have a resolved alert at least: it stays until an Alertmanager that was
	// away has taken it.
	KeepResolved time.Duration
	// MaxAlerts bounds the state of a partition; resolved ones go first, then those changed longest ago.
	MaxAlerts int
	Client    *http.Client // nil = one that follows no redirects
	Log       *slog.Logger
}

// Defaults of Options.
const (
	DefaultKeepResolved = 15 * time.Minute
	DefaultMaxAlerts    = 10_000
)

// Notifier notifies of one partition of the alerts topic.
type Notifier struct {
	cfg    Options
	counts *Counts
	kicks  []chan struct{} // by Alertmanager: the state changed
	live   atomic.Bool     // the state is that of the topic's end
	known  *known
	newest atomic.Int64 // offset of the latest record that was read
}

// mostBehind is how many records a webhook may be behind that takes nothing: what was before is given up. All of them
// are told again if the process ends, for offsets are the group's and not a webhook's.
const mostBehind = 1024

var errFarBehind = fmt.Errorf("not sent: it takes nothing, and %d newer records wait for it", mostBehind)

// known is the state that the records make up which one reader has read.
type known struct {
	max    int
	counts *Counts
	log    *slog.Logger

	mu     sync.Mutex
	alerts map[string]*entry
}

func newKnown(most int, counts *Counts, log *slog.Logger) *known {
	return &known{max: most, counts: counts, log: log, alerts: map[string]*entry{}}
}

// change is an alert with what was notified before it.
type change struct {
	alert *record.Alert
	over  bool // it was notified as firing, and is inhibited from now on
	again bool // it is resolved, which those who get no inhibited alerts know already
}

type entry struct {
	alert    record.Alert
	changed  time.Time // by the clock here
	notified bool      // it has fired uninhibited since it was last resolved
}

// New returns a notifier without alerts.
func New(cfg Options, counts *Counts) *Notifier {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	defaults := setting.Default[Config]()
	set(&cfg.Resend, defaults.Resend)
	set(&cfg.KeepResolved, DefaultKeepResolved)
	set(&cfg.Timeout, defaults.Timeout)
	set(&cfg.RetryFor, defaults.RetryFor)
	if cfg.MaxAlerts == 0 {
		cfg.MaxAlerts = DefaultMaxAlerts
	}
	if cfg.Client == nil {
		// A redirected POST may arrive as a GET without the alert, and its answer would count as taken.
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		cfg.Client = &http.Client{CheckRedirect: stay}
	}
	n := &Notifier{cfg: cfg, counts: counts, known: newKnown(cfg.MaxAlerts, counts, cfg.Log)}
	for range cfg.Alertmanagers {
		n.kicks = append(n.kicks, make(chan struct{}, 1))
	}
	return n
}

// Source reads a partition from its start, as kafkaio.Log does.
type Source interface {
	// Next blocks for the next record, or, each time the end is reached, one with Idle set.
	Next(ctx context.Context) (pipeline.Record, error)
	Close() error
}

// Run reads a partition of the alerts topic from its start until ctx is done. Records before done were delivered to the
// webhooks before, and only make up the state; commit is called with the offset after the latest record before which
// every webhook has been notified of all. Nobody waits for anybody else, however much there is to tell: each webhook
// reads by itself, what it has not got waits in the topic, and each Alertmanager has its own pace. A source must give
// an Idle record when it has reached the topic's end: Alertmanagers get nothing before that, for a state half read
// would resolve what fires.
func (n *Notifier) Run(ctx context.Context, open func() Source, done int64,
	commit func(ctx context.Context, next int64) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, o := range n.counts.outcomes("alertmanager", n.cfg.Alertmanagers) {
		g.Go(func() error { return n.resend(ctx, n.cfg.Alertmanagers[i], n.kicks[i], o) })
	}
	var addresses []string
	for _, w := range n.cfg.Hooks {
		addresses = append(addresses, w.URL)
	}
	p := newProgress(done, max(1, len(n.cfg.Hooks)))
	for i, o := range n.counts.outcomes("webhook", addresses) {
		g.Go(func() error { return n.work(ctx, open(), i, o, p) })
	}
	g.Go(func() error {
		return p.commit(ctx, func(ctx context.Context, next int64) error {
			err := commit(ctx, next)
			if err != nil && ctx.Err() == nil {
				n.cfg.Log.Warn("commit offsets: a process that starts before the next time notifies again", "next",
					next, "err", err)
			}
			return err
		})
	})
	g.Go(func() error {
		return read(ctx, open(), n.known, func(r *pipeline.Record, c *change) error {
			switch {
			case r.Idle && !n.live.Swap(true), c != nil:
				n.changed()
			}
			if r.Idle {
				return nil
			}
			n.newest.Store(r.Offset)
			if r.Offset >= p.done && len(n.cfg.Hooks) == 0 { // what was read is done
				p.reach(0, r.Offset+1)
			}
			return nil
		})
	})
	return g.Wait()
}

// read has each record of a source make up the state, and calls then with it and with what it changed.
func read(ctx context.Context, source Source, state *known, then func(*pipeline.Record, *change) error) error {
	defer func() { _ = source.Close() }()
	for {
		r, err := source.Next(ctx)
		if err != nil {
			return err
		}
		var c *change
		if !r.Idle {
			c = state.take(&r)
		}
		if err := then(&r, c); err != nil {
			return err
		}
	}
}

// take puts a record into the state; nil for a tombstone, a repeat, and what is no alert.
func (k *known) take(r *pipeline.Record) *change {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(r.Value) == 0 {
		delete(k.alerts, string(r.Key))
		return nil
	}
	e := &entry{changed: time.Now()}
	if err := json.Unmarshal(r.Value, &e.alert); err != nil {
		k.counts.Unreadable.Add(1)
		k.log.Error("alert cannot be read", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err",
			err)
		return nil
	}
	old := k.alerts[string(r.Key)]
	if old != nil && reflect.DeepEqual(old.alert, e.alert) {
		return nil
	}
	notified := old != nil && old.notified && old.alert.State != resolved
	hidden := old != nil && stateOf(&old.alert) == inhibited
	e.notified = notified || stateOf(&e.alert) == firing
	k.alerts[string(r.Key)] = e
	if len(k.alerts) > k.max {
		k.evict()
	}
	return &change{
		alert: &e.alert,
		over:  notified && !hidden && stateOf(&e.alert) == inhibited && e.alert.State != resolved,
		again: notified && hidden && e.alert.State == resolved,
	}
}

// evict drops one alert: a resolved one rather than another, of those the one that changed longest ago.
func (k *known) evict() {
	var worst string
	var of *entry
	for key, e := range k.alerts {
		if of == nil || less(e, of) || !less(of, e) && key < worst {
			worst, of = key, e
		}
	}
	delete(k.alerts, worst)
	k.counts.Evicted.Add(1)
	if stateOf(&of.alert) == firing {
		k.log.Error("too many alerts for Alertmanager, one is left out", "max", k.max, "key",
			worst)
	}
}

func less(a, b *entry) bool {
	if x, y := stateOf(&a.alert) == firing, stateOf(&b.alert) == firing; x != y {
		return y
	}
	return a.changed.Before(b.changed)
}

func (n *Notifier) changed() {
	for _, kick := range n.kicks {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
}

// work notifies one webhook of every change that it wants, in order. What it cannot read the other reader counts.
func (n *Notifier) work(ctx context.Context, source Source, i int, o *Outcomes, p *progress) error {
	w := &n.cfg.Hooks[i]
	patience, notYet := n.cfg.RetryFor, time.Time{}
	state := newKnown(n.cfg.MaxAlerts, &Counts{}, slog.New(slog.DiscardHandler))
	return read(ctx, source, state, func(r *pipeline.Record, c *change) error {
		if r.Idle || r.Offset < p.done {
			return nil
		}
		if a := c.seenBy(w); a != nil {
			// The sum tells a record from that of this offset before the topic was deleted and made again: receivers
			// drop what comes with an id that they have had.
			id := fmt.Sprintf("%s-%d-%d-%08x", r.Topic, r.Partition, r.Offset, crc32.ChecksumIEEE(r.Value))
			taken, err := false, error(nil)
			if patience > 0 || n.newest.Load()-r.Offset <= mostBehind {
				taken, err = n.deliver(ctx, delivery{w, id, a, patience, &o.Failed, &notYet})
			} else {
				n.cfg.Log.Error("webhook given up", "webhook", host(w.URL), "id", id, "rule", a.Rule, "state", a.State,
					faultlog.Err(errFarBehind))
			}
			if err != nil {
				return err
			}
			if taken {
				o.OK.Add(1)
				patience = n.cfg.RetryFor
			} else {
				o.GivenUp.Add(1)
				patience = 0 // the next is tried once
			}
		}
		p.reach(i, r.Offset+1)
		return nil
	})
}

// resend sends one Alertmanager the state: at once when it changes, every Resend, and sooner after a failure.
func (n *Notifier) resend(ctx context.Context, base string, kick <-chan struct{}, o *Outcomes) error {
	pause, again := n.cfg.Resend, backoff.New(firstPause, lastPause)
	var taken time.Time // when the state was that it took last
	for {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-kick:
			t.Stop()
		case <-t.C:
		}
		if !n.live.Load() {
			continue
		}
		select {
		case <-kick: // the state that is sent has that change too
		default:
		}
		if now := time.Now(); n.sendState(ctx, base, o, now, taken) {
			taken = now
			pause = n.cfg.Resend
			again.Reset()
		} else {
			pause = min(again.Next(), n.cfg.Resend)
		}
	}
}

// sendState sends an Alertmanager the state and reports whether it took it; taken is when the state was that it took
// last.
func (n *Notifier) sendState(ctx context.Context, base string, o *Outcomes, now, taken time.Time) bool {
	alerts := n.state(now, taken)
	if len(alerts) == 0 {
		return true
	}
	if err := n.cfg.send(ctx, base, alerts); err != nil {
		if ctx.Err() == nil {
			o.Failed.Add(1)
			n.cfg.Log.Warn("alertmanager failed, trying again", "alertmanager", host(base), "alerts", len(alerts),
				"err", err)
		}
		return false
	}
	o.OK.Add(1)
	return true
}

// state is what fires, and what resolved or was inhibited of late, in the order of the keys. An alert that was
// inhibited from the start is not in it. What changed since taken is news, however long ago that was.
func (n *Notifier) state(now, taken time.Time) []postable {
	n.known.mu.Lock()
	defer n.known.mu.Unlock()
	keys := make([]string, 0, len(n.known.alerts))
	for key, e := range n.known.alerts {
		switch {
		case stateOf(&e.alert) == firing:
			keys = append(keys, key)
		case (stateOf(&e.alert) == resolved || stateOf(&e.alert) == inhibited && e.notified) &&
			(now.Sub(e.changed) < n.cfg.KeepResolved || !e.changed.Before(taken)):
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out := make([]postable, len(keys))
	for i, key := range keys {
		out[i] = n.cfg.asPostable(&n.known.alerts[key].alert, now)
	}
	return out
}
