package engine

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/disk"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
)

// runMetrics collects what is true at the moment of the scrape: lag, whether the process is paused, and bounds with
// what is left of them.
type runMetrics struct{ *process }

var (
	descPaused     = prometheus.NewDesc("plumbline_paused", "1 while this process is paused.", nil, nil)
	descLagOffsets = prometheus.NewDesc("plumbline_lag_offsets",
		"Offsets between the next record to be read and the end of the log.", []string{"task", "partition", "input"},
		nil)
	descLagSeconds = prometheus.NewDesc("plumbline_lag_seconds",
		"Now less the timestamp of the oldest record that has not been read; 0 at the end of the log.",
		[]string{"task", "partition", "input"}, nil)
	descJoinRows = prometheus.NewDesc("plumbline_join_max_rows", "join.max_rows: how many rows of a shard may wait.",
		nil, nil)
	descWaitingFor = prometheus.NewDesc("plumbline_waiting_for_timestamp_seconds",
		"Since when a partition without messages has held everything back.", []string{"input", "partition"}, nil)
	descSilent = prometheus.NewDesc("plumbline_kafka_silent_timestamp_seconds",
		"Since when no broker has answered; absent while one does.", nil, nil)
	descOutside = prometheus.NewDesc("plumbline_group_out_timestamp_seconds",
		"Since when this process is not in the consumer group of its tasks; absent while it is.", []string{"task"}, nil)
	descScaleSince = prometheus.NewDesc("plumbline_scale_open_timestamp_seconds",
		"When the order for more shards was given that is being carried out.", nil, nil)
	descDiskFree = prometheus.NewDesc("plumbline_disk_free_bytes",
		"What this process may still write to the file system of a directory.",
		[]string{"dir"}, nil)
	descFailing = prometheus.NewDesc("plumbline_task_failing",
		"1 while a task fails and is tried again, 0 otherwise.", []string{"task", "partition"}, nil)
	descFailures = prometheus.NewDesc("plumbline_task_failures_total",
		"Ends of a task by an error; each is followed by another attempt.", []string{"task", "partition"}, nil)
	descDiskSize = prometheus.NewDesc("plumbline_disk_size_bytes", "Size of that file system.", []string{"dir"}, nil)
)

// Describe implements prometheus.Collector.
func (c runMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descPaused
	ch <- descLagOffsets
	ch <- descLagSeconds
	ch <- descWaitingFor
	ch <- descJoinRows
	ch <- descSilent
	ch <- descOutside
	ch <- descScaleSince
	ch <- descDiskFree
	ch <- descDiskSize
	ch <- descFailing
	ch <- descFailures
}

// Collect implements prometheus.Collector.
func (c runMetrics) Collect(ch chan<- prometheus.Metric) {
	paused := 0.0
	if c.paused() != nil {
		paused = 1
	}
	ch <- prometheus.MustNewConstMetric(descPaused, prometheus.GaugeValue, paused)
	ch <- prometheus.MustNewConstMetric(descJoinRows, prometheus.GaugeValue, float64(c.config.Join.MaxRows))
	for what, dir := range diskDirs(c.config) {
		if s, ok := disk.Under(dir); ok {
			ch <- prometheus.MustNewConstMetric(descDiskFree, prometheus.GaugeValue, float64(s.Free), what)
			ch <- prometheus.MustNewConstMetric(descDiskSize, prometheus.GaugeValue, float64(s.Size), what)
		}
	}
	if since, open := c.scaledSince(); open {
		ch <- prometheus.MustNewConstMetric(descScaleSince, prometheus.GaugeValue, float64(since.Unix()))
	}
	if s := c.kafkaSilence(); s != nil {
		ch <- prometheus.MustNewConstMetric(descSilent, prometheus.GaugeValue, float64(s.Since.UnixMilli())/1e3)
	}
	for _, o := range c.due.outside(time.Now()) {
		ch <- prometheus.MustNewConstMetric(descOutside, prometheus.GaugeValue, float64(o.Since.UnixMilli())/1e3,
			o.Stage)
	}
	c.collectAttempts(ch)
	type place struct {
		input     string
		partition int
	}
	waits := map[place]time.Time{} // for the longest silent of several topics
	for _, w := range c.waitingFor(c.taskStatuses(), time.Now()) {
		p := place{w.Input, w.Partition}
		if since, ok := waits[p]; !ok || w.Since.Before(since) {
			waits[p] = w.Since
		}
	}
	for p, since := range waits {
		ch <- prometheus.MustNewConstMetric(descWaitingFor, prometheus.GaugeValue, float64(since.UnixMilli())/1e3,
			p.input, strconv.Itoa(p.partition))
	}
	lag := c.lag(time.Now())
	for _, name := range slices.Sorted(maps.Keys(lag)) {
		i := strings.LastIndexByte(name, '-')
		for in, l := range lag[name] {
			ch <- prometheus.MustNewConstMetric(descLagOffsets, prometheus.GaugeValue, float64(l.Offsets), name[:i],
				name[i+1:], in)
			ch <- prometheus.MustNewConstMetric(descLagSeconds, prometheus.GaugeValue, l.Seconds, name[:i], name[i+1:],
				in)
		}
	}
}

// collectAttempts shows which tasks fail, and how often.
func (c runMetrics) collectAttempts(ch chan<- prometheus.Metric) {
	failing := map[attempts.ID]float64{}
	for _, f := range c.attempts.Failing() {
		failing[f.ID] = 1
	}
	for id, n := range c.attempts.Totals() {
		labels := []string{id.Task, strconv.Itoa(id.Partition)}
		ch <- prometheus.MustNewConstMetric(descFailing, prometheus.GaugeValue, failing[id], labels...)
		ch <- prometheus.MustNewConstMetric(descFailures, prometheus.CounterValue, float64(n), labels...)
	}
}

// diskDirs returns the directories that this process writes to, by what they hold.
func diskDirs(c *config.Config) map[string]string {
	out := map[string]string{}
	if c.Join.MemoryBytes > 0 {
		out["join"] = workDir(c)
	}
	if c.Checkpoints.Store == pipeline.StoreDirectory {
		out["checkpoints"] = c.Checkpoints.Dir
	}
	if c.Archive.Directory != "" {
		out["archive"] = c.Archive.Directory
	}
	if p := c.History.Path; p != "" { // else it is where the join is
		out["history"] = filepath.Dir(p)
	}
	return out
}
