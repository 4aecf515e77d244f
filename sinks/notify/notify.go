package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// States of an alert.
const (
	firing    = "firing"
	resolved  = "resolved"
	inhibited = "inhibited" // not a state of its own in records: another alert or a calibrator stands for it
)

// stateOf is what a notifier takes an alert for.
func stateOf(a *output.Alert) string {
	if a.InhibitedBy != "" {
		return inhibited
	}
	return a.State
}

// Config is whom to tell, and how.
type Config struct {
	Alertmanagers []string // base URLs; all are told everything
	Webhooks      []Webhook
	// ExternalURL is where people reach the page, for links; "" = no links.
	ExternalURL string
	// Labels are added to every alert for Alertmanager.
	Labels map[string]string
	// Resend is how often Alertmanagers are told the current state; KeepResolved how long a resolved alert is in it.
	Resend, KeepResolved time.Duration
	Timeout              time.Duration // of a request
	RetryFor             time.Duration // before a webhook's delivery is given up
	// MaxAlerts bounds the state of a partition; resolved ones go first, then those changed longest ago.
	MaxAlerts int
	Client    *http.Client // nil = one like http.DefaultClient
	Log       *slog.Logger
}

// Defaults of Config.
const (
	DefaultResend       = time.Minute
	DefaultKeepResolved = 15 * time.Minute
	DefaultTimeout      = 10 * time.Second
	DefaultRetryFor     = 15 * time.Minute
	DefaultMaxAlerts    = 10_000
)

// Counts say how notifications went; all only grow.
type Counts struct {
	AlertmanagerSent, AlertmanagerFailed atomic.Int64 // requests
	WebhookSent, WebhookGivenUp          atomic.Int64 // deliveries
	Evicted, Unreadable                  atomic.Int64 // alerts for want of room; records
}

// Notifier tells of one partition of the alerts topic.
type Notifier struct {
	cfg    Config
	counts *Counts
	kick   chan struct{} // the state changed
	live   atomic.Bool   // the state is that of the topic's end

	mu     sync.Mutex
	alerts map[string]*entry
	down   []bool // by webhook: the last delivery was given up, so the next is tried once
}

// job is a record that was read: its offset is committed when the alert, if there is one, has been delivered.
type job struct {
	id     string
	change *change
	next   int64
}

// change is an alert with what was told before it.
type change struct {
	alert *output.Alert
	over  bool // it was told to fire, and is inhibited from now on
	again bool // it is resolved, and those who are not told of inhibited alerts know that it is over
}

// queue is how many changes may wait for webhooks before reading waits, too, and with it Alertmanager's news.
const queue = 1024

type entry struct {
	alert   output.Alert
	changed time.Time // by the clock here
	told    bool      // it has fired uninhibited since it was last resolved
}

// New returns a notifier without alerts.
func New(cfg Config, counts *Counts) *Notifier {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&cfg.Resend, DefaultResend)
	set(&cfg.KeepResolved, DefaultKeepResolved)
	set(&cfg.Timeout, DefaultTimeout)
	set(&cfg.RetryFor, DefaultRetryFor)
	if cfg.MaxAlerts == 0 {
		cfg.MaxAlerts = DefaultMaxAlerts
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{}
	}
	return &Notifier{cfg: cfg, counts: counts, kick: make(chan struct{}, 1), alerts: map[string]*entry{}, down: make([]bool, len(cfg.Webhooks))}
}

// Run reads a partition of the alerts topic from its start until ctx is done. Records before done were delivered to
// the webhooks before, and only make up the state; commit is called with the offset after each record that has been
// delivered since. source must give an Idle record when it has reached the topic's end: Alertmanagers are told nothing
// before that, for a state half read would resolve what fires.
func (n *Notifier) Run(ctx context.Context, source pipeline.Source, done int64, commit func(ctx context.Context, next int64) error) error {
	jobs := make(chan job, queue)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.tellAgain(ctx) })
	g.Go(func() error { return n.work(ctx, jobs, commit) })
	g.Go(func() error { return n.read(ctx, source, done, jobs) })
	return g.Wait()
}

func (n *Notifier) read(ctx context.Context, source pipeline.Source, done int64, jobs chan<- job) error {
	for {
		r, err := source.Next(ctx)
		if err != nil {
			return err
		}
		if r.Idle {
			if !n.live.Swap(true) {
				n.changed()
			}
			continue
		}
		j := job{id: fmt.Sprintf("%s-%d-%d", r.Topic, r.Partition, r.Offset), change: n.take(&r), next: r.Offset + 1}
		if r.Offset < done {
			continue
		}
		select {
		case jobs <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *Notifier) work(ctx context.Context, jobs <-chan job, commit func(ctx context.Context, next int64) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case j := <-jobs:
			if j.change != nil {
				if err := n.deliverAll(ctx, j.id, j.change); err != nil {
					return err
				}
			}
			if err := commit(ctx, j.next); err != nil {
				return err
			}
		}
	}
}

// take puts a record into the state; nil for a tombstone and for what is no alert.
func (n *Notifier) take(r *pipeline.Record) *change {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(r.Value) == 0 {
		delete(n.alerts, string(r.Key))
		return nil
	}
	e := &entry{changed: time.Now()}
	if err := json.Unmarshal(r.Value, &e.alert); err != nil {
		n.counts.Unreadable.Add(1)
		n.cfg.Log.Error("alert cannot be read", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err", err)
		return nil
	}
	old := n.alerts[string(r.Key)]
	told := old != nil && old.told && old.alert.State != resolved
	hidden := old != nil && stateOf(&old.alert) == inhibited
	e.told = told || stateOf(&e.alert) == firing
	n.alerts[string(r.Key)] = e
	if len(n.alerts) > n.cfg.MaxAlerts {
		n.evict()
	}
	n.changed()
	return &change{alert: &e.alert, over: told && !hidden && stateOf(&e.alert) == inhibited && e.alert.State != resolved,
		again: told && hidden && e.alert.State == resolved}
}

// evict drops one alert: a resolved one rather than another, of those the one that changed longest ago.
func (n *Notifier) evict() {
	var worst string
	var of *entry
	for key, e := range n.alerts {
		if of == nil || less(e, of) || !less(of, e) && key < worst {
			worst, of = key, e
		}
	}
	delete(n.alerts, worst)
	n.counts.Evicted.Add(1)
	if stateOf(&of.alert) == firing {
		n.cfg.Log.Error("too many alerts to tell Alertmanager of, one is left out", "max", n.cfg.MaxAlerts, "key", worst)
	}
}

func less(a, b *entry) bool {
	if x, y := stateOf(&a.alert) == firing, stateOf(&b.alert) == firing; x != y {
		return y
	}
	return a.changed.Before(b.changed)
}

func (n *Notifier) changed() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// deliverAll sends a change to every webhook that wants it, at the same time.
func (n *Notifier) deliverAll(ctx context.Context, id string, c *change) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range n.cfg.Webhooks {
		w := &n.cfg.Webhooks[i]
		a := c.seenBy(w)
		if a == nil {
			continue
		}
		g.Go(func() error {
			patience := n.cfg.RetryFor
			if n.down[i] { // the others must not wait for it again and again
				patience = 0
			}
			taken, err := n.deliver(ctx, w, id, a, patience)
			if err != nil {
				return err
			}
			n.down[i] = !taken
			if taken {
				n.counts.WebhookSent.Add(1)
			} else {
				n.counts.WebhookGivenUp.Add(1)
			}
			return nil
		})
	}
	return g.Wait()
}

// tellAgain tells every Alertmanager the state: at once when it changes, every Resend, and sooner after a failure.
func (n *Notifier) tellAgain(ctx context.Context) error {
	if len(n.cfg.Alertmanagers) == 0 {
		return nil
	}
	pause, again := n.cfg.Resend, firstPause
	for {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-n.kick:
			t.Stop()
		case <-t.C:
		}
		if !n.live.Load() {
			continue
		}
		if n.tellAll(ctx) {
			pause, again = n.cfg.Resend, firstPause
		} else {
			pause, again = min(again, n.cfg.Resend), min(2*again, lastPause)
		}
	}
}

// tellAll tells every Alertmanager the state and reports whether all took it.
func (n *Notifier) tellAll(ctx context.Context) bool {
	alerts := n.state(time.Now())
	if len(alerts) == 0 {
		return true
	}
	ok := true
	for _, base := range n.cfg.Alertmanagers {
		if err := n.cfg.tell(ctx, base, alerts); err != nil {
			if ctx.Err() != nil {
				return false
			}
			ok = false
			n.counts.AlertmanagerFailed.Add(1)
			n.cfg.Log.Warn("alertmanager failed, trying again", "alertmanager", host(base), "alerts", len(alerts), "err", err)
			continue
		}
		n.counts.AlertmanagerSent.Add(1)
	}
	return ok
}

// state is what fires, and what resolved or was inhibited of late, in the order of the keys. An alert that was inhibited from the
// start is not in it.
func (n *Notifier) state(now time.Time) []postable {
	n.mu.Lock()
	defer n.mu.Unlock()
	keys := make([]string, 0, len(n.alerts))
	for key, e := range n.alerts {
		switch {
		case stateOf(&e.alert) == firing:
			keys = append(keys, key)
		case (stateOf(&e.alert) == resolved || stateOf(&e.alert) == inhibited && e.told) && now.Sub(e.changed) < n.cfg.KeepResolved:
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out := make([]postable, len(keys))
	for i, key := range keys {
		out[i] = n.cfg.postable(&n.alerts[key].alert, now)
	}
	return out
}
