package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/sinks/registry"
	"github.com/plumbline/plumbline/web"
)

// past is the history of this process: the database, and what fills it.
type past struct {
	store *registry.Store
	fill  *registry.Filler
}

func openRegistry(cfg config.Config, file string) (*registry.Store, error) {
	h := cfg.History
	dsn, err := h.DSN()
	if err != nil {
		return nil, err
	}
	return registry.Open(registry.Config{Store: h.Store, Path: file, DSN: dsn, Rows: h.Rows, MaxAge: h.MaxAge, Timeout: h.Timeout})
}

// pastPage is an answer of the history.
type pastPage struct {
	Entries []registry.Entry `json:"entries"`
	Next    string           `json:"next,omitempty"`
	// Behind is how many offsets of the topics are not in the database; -1 = not known.
	Behind int64 `json:"behind"`
}

// Past implements web.Past.
func (p *past) Past(ctx context.Context, q web.PastQuery) (any, error) {
	behind := p.fill.Status().Behind // before the database is read
	page, err := p.store.Query(ctx, registry.Query{Model: q.Model, Version: q.Version, Kinds: q.Kinds, Since: q.Since, Until: q.Until, Limit: q.Limit,
		Cursor: q.Cursor, Records: q.Records})
	if errors.Is(err, registry.ErrCursor) {
		return nil, fmt.Errorf("%w: %w", web.ErrQuery, err)
	}
	return pastPage{page.Entries, page.Next, behind}, err
}

// historyMetrics collects how the history does.
type historyMetrics struct{ *past }

// Describe implements prometheus.Collector.
func (c historyMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descHistoryUp
	ch <- descHistoryBehind
	ch <- descHistoryRecords
	ch <- descHistoryFailed
}

// Collect implements prometheus.Collector.
func (c historyMetrics) Collect(ch chan<- prometheus.Metric) {
	st, up := c.fill.Status(), 0.0
	if st.Up {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(descHistoryUp, prometheus.GaugeValue, up)
	if st.Behind >= 0 {
		ch <- prometheus.MustNewConstMetric(descHistoryBehind, prometheus.GaugeValue, float64(st.Behind))
	}
	for outcome, n := range map[string]int64{"stored": c.fill.Stored.Load(), "repeated": c.fill.Repeated.Load(), "unreadable": c.fill.Unreadable.Load(),
		"pruned": c.fill.Pruned.Load()} {
		ch <- prometheus.MustNewConstMetric(descHistoryRecords, prometheus.CounterValue, float64(n), outcome)
	}
	ch <- prometheus.MustNewConstMetric(descHistoryFailed, prometheus.CounterValue, float64(c.fill.Failures.Load()))
}

var (
	descHistoryUp      = prometheus.NewDesc("plumbline_history_up", "1 if the last writes to the database of the history went well.", nil, nil)
	descHistoryBehind  = prometheus.NewDesc("plumbline_history_behind_offsets", "Offsets of the topics that are not in the database yet; absent while not known.", nil, nil)
	descHistoryRecords = prometheus.NewDesc("plumbline_history_records_total", "Records for the history, by what became of them: stored, repeated (there already), unreadable, pruned.", []string{"outcome"}, nil)
	descHistoryFailed  = prometheus.NewDesc("plumbline_history_failures_total", "Tries to write to the database that failed; each is made again.", nil, nil)
)
