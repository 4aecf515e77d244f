package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/sinks/notify"
	"github.com/plumbline/plumbline/sinks/registry"
)

// notifyOptions reads addresses and secrets; ok is false if alerts have no receivers.
func notifyOptions(cfg config.Config, log *slog.Logger) (out notify.Options, ok bool, err error) {
	c := cfg.Notify
	hooks, err := c.ReadWebhooks()
	out = notify.Options{Config: c, Hooks: hooks, History: cfg.History.Store != registry.Off, Log: log}
	return out, len(c.Alertmanagers)+len(hooks) > 0, err
}

// alertsTopic knows of the alerts topic whether it was deleted and made again under this process.
type alertsTopic struct {
	anew atomic.Int64 // how often
	told sync.Map     // partitions of which the group had an offset; it goes with the topic
}

// follow runs those who read the topic, from its start again each time that it was deleted and made again. Nothing
// would fire for them until a state changes, so tasks publish then what does (reminder).
func (a *alertsTopic) follow(ctx context.Context, spec kafkaio.TailSpec, topic string,
	read func(ctx context.Context) error) error {
	var begun atomic.Bool
	return kafkaio.EachPartition(ctx, spec, topic, func(ctx context.Context, p int) error {
		if p != 0 {
			return nil
		}
		if begun.Swap(true) {
			a.anew.Add(1)
		}
		if err := read(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

// notifier notifies of alerts. A new sink of records is a package of sinks, with its section in internal/config, and a
// type like this, which Run starts, if one process is to get a record; a tail of follower, if each is.
type notifier struct {
	*host
	alerts *alertsTopic
	counts *notify.Counts
}

// run shares the partitions of the alerts topic with other processes and sends notifications for its own. The
// group's offsets say what the webhooks have been told; the state comes from the topic's start.
func (n notifier) run(ctx context.Context, cfg notify.Options) error {
	topic, id := n.Config.Topics.Alerts, n.Config.Group+"-notify"
	g := n.newGroup(id, topic)
	return g.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
		done, err := n.upTo(ctx, id, topic, p, commit)
		if err != nil {
			return err
		}
		open := func() notify.Source { return kafkaio.NewLog(n.TailSpec(), topic, p, kafkaio.Range{}) }
		return notify.New(cfg, n.counts).Run(ctx, open, done, func(ctx context.Context, next int64) error {
			return commit(ctx, map[string]int64{topic: next})
		})
	})
}

// upTo returns the offset up to which webhooks have been notified. If they never were, it commits and returns
// the topic's end: alerts from before notifications were configured are not sent, those that come while no process
// runs are sent later. Of a topic that was made again all is news.
func (n notifier) upTo(ctx context.Context, group, topic string, p int, commit kafkaio.CommitFunc) (int64, error) {
	done, err := kafkaio.Committed(ctx, n.Client, group, topic, p)
	if err != nil {
		return done, err
	}
	_, end, err := kafkaio.Bounds(ctx, n.Client, topic, p)
	if err != nil {
		return 0, err
	}
	_, told := n.alerts.told.Load(p)
	switch again := told || n.alerts.anew.Load() > 0; {
	case done > end, done < 0 && again:
		return 0, nil
	case done >= 0:
		n.alerts.told.Store(p, true)
		return done, nil
	}
	if done, err = end, commit(ctx, map[string]int64{topic: end}); err == nil {
		n.alerts.told.Store(p, true)
	}
	return done, err
}

// notifyMetrics collects how notifications went.
type notifyMetrics struct{ *notify.Counts }

var (
	descNotifications = prometheus.NewDesc("plumbline_notifications_total",
		"Requests to Alertmanagers and deliveries to webhooks, by receiver (its host) and outcome: ok; "+
			"failed is tried again; given_up is not.", []string{"to", "receiver", "outcome"}, nil)
	descNotifyDropped = prometheus.NewDesc("plumbline_notify_alerts_dropped_total",
		"Alerts that nobody is told of: no room, or the record cannot be read.", []string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (c notifyMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descNotifications
	ch <- descNotifyDropped
}

// Collect implements prometheus.Collector.
func (c notifyMetrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for _, r := range c.Receivers() {
		o := c.Of(r)
		counter(descNotifications, o.OK.Load(), r.To, r.Name, "ok")
		counter(descNotifications, o.Failed.Load(), r.To, r.Name, "failed")
		if r.To == "webhook" {
			counter(descNotifications, o.GivenUp.Load(), r.To, r.Name, "given_up")
		}
	}
	counter(descNotifyDropped, c.Evicted.Load(), "no_room")
	counter(descNotifyDropped, c.Unreadable.Load(), "unreadable")
}
