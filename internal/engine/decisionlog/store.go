package decisionlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/sinks/registry"
	"github.com/plumbline/plumbline/web"
)

// Store is the history of this process: the database, and what fills it.
type Store struct {
	Store *registry.Store
	Fill  *registry.Filler
}

// Open returns the database of a configuration; file is where a database in a file is.
func Open(c registry.Config, file string) (*registry.Store, error) {
	o, err := c.OptionsAt(file)
	if err != nil {
		return nil, err
	}
	return registry.Open(o)
}

// Page is an answer of the history.
type Page struct {
	Entries []registry.Entry `json:"entries"`
	Next    string           `json:"next,omitempty"`
	// Behind is how many offsets of the topics are not in the database; -1 = not known.
	Behind int64 `json:"behind"`
}

// Past implements web.Past.
func (p *Store) Past(ctx context.Context, q web.PastQuery) (any, error) {
	behind := p.Fill.Progress().Behind // before the database is read
	page, err := p.Store.Query(ctx, registry.Search{Model: q.Model, Version: q.Version, Kinds: q.Kinds, Since: q.Since,
		Until: q.Until, Limit: q.Limit,
		Cursor: q.Cursor, Records: q.Records})
	if errors.Is(err, registry.ErrCursor) {
		return nil, fmt.Errorf("%w: %w", web.ErrQuery, err)
	}
	return Page{page.Entries, page.Next, behind}, err
}

// Metrics collects how the history does.
type Metrics struct{ *Store }

// Describe implements prometheus.Collector.
func (c Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descHistoryUp
	ch <- descHistoryBehind
	ch <- descHistoryRecords
	ch <- descHistoryFailed
}

// Collect implements prometheus.Collector.
func (c Metrics) Collect(ch chan<- prometheus.Metric) {
	st, up := c.Fill.Progress(), 0.0
	if st.Up {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(descHistoryUp, prometheus.GaugeValue, up)
	if st.Behind >= 0 {
		ch <- prometheus.MustNewConstMetric(descHistoryBehind, prometheus.GaugeValue, float64(st.Behind))
	}
	for outcome, n := range map[string]int64{"stored": c.Fill.Stored.Load(), "repeated": c.Fill.Repeated.Load(),
		"unreadable": c.Fill.Unreadable.Load(),
		"pruned":     c.Fill.Pruned.Load()} {
		ch <- prometheus.MustNewConstMetric(descHistoryRecords, prometheus.CounterValue, float64(n), outcome)
	}
	ch <- prometheus.MustNewConstMetric(descHistoryFailed, prometheus.CounterValue, float64(c.Fill.Failures.Load()))
}

var (
	descHistoryUp = prometheus.NewDesc("plumbline_history_up",
		"1 if the last writes to the database of the history went well.", nil, nil)
	descHistoryBehind = prometheus.NewDesc("plumbline_history_behind_offsets",
		"Offsets of the topics that are not in the database yet; absent while not known.", nil, nil)
	descHistoryRecords = prometheus.NewDesc("plumbline_history_records_total",
		"Records for the history, by what became of them: stored, repeated (there already), unreadable, pruned.",
		[]string{"outcome"}, nil)
	descHistoryFailed = prometheus.NewDesc("plumbline_history_failures_total",
		"Tries to write to the database that failed; each is made again.", nil, nil)
)
