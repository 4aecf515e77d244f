package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// MaxSeries bounds the (model, version, slice, window) keys that are exported; the rest are counted in
// plumbline_export_dropped_keys.
const MaxSeries = 500

type modelKey struct{ model, version string }

// collector reads the history and the tasks' statuses at scrape time: nothing is kept twice.
type collector struct {
	Options
	history *history.History
	tasks   func() []*pipeline.TaskStatus
	saved   savedTimes
}

// Options say what of the history is exported.
type Options struct {
	// Worst is how many slices of a model version and window are exported, the worst of them; 0 = WorstSlices.
	Worst int
	// Silent is the event time that a model version may be behind another version of its model; what has had no window
	// for longer is left out. 0: any time.
	Silent time.Duration
}

// WorstSlices is how many slices of a model version and window are exported by default.
const WorstSlices = 20

// Handler answers /metrics with the calibration of the latest windows, the counts of the tasks in this
// process, the Go runtime's own metrics, and what more collects.
func Handler(h *history.History, o Options, tasks func() []*pipeline.TaskStatus,
	more ...prometheus.Collector) http.Handler {
	if o.Worst <= 0 {
		o.Worst = WorstSlices
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{Options: o, history: h, tasks: tasks})
	reg.MustRegister(more...)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

var (
	keyLabels    = []string{"model", "version", "slice", "window"}
	signalLabels = append(slices.Clone(keyLabels), "signal")
	modelLabels  = []string{"model", "version"}
	taskLabels   = []string{"task", "partition"}
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plumbline_"+name, help, labels, nil)
}

var (
	descECE     = desc("ece_ratio", "Expected calibration error of the latest window.", signalLabels...)
	descECENull = desc("ece_null_ratio",
		"ECE that a perfectly calibrated model would show at these counts.", signalLabels...)
	descECELo = desc("ece_lower_ratio", "Lower end of the 95 % interval of the ECE.", signalLabels...)
	descECEHi = desc("ece_upper_ratio", "Upper end of the 95 % interval of the ECE.", signalLabels...)
	descCWECE = desc("cwece_ratio",
		"Class-wise ECE of the latest window: the mean over the classes, each by its own probability.", signalLabels...)
	descAccuracy   = desc("accuracy_ratio", "Accuracy of the latest window.", signalLabels...)
	descConfidence = desc("mean_confidence_ratio",
		"Mean top-label confidence of the labelled rows.", signalLabels...)
	descNLL       = desc("nll_nats", "Mean negative log-likelihood.", signalLabels...)
	descBrier     = desc("brier_score", "Mean Brier score, summed over classes.", signalLabels...)
	descRows      = desc("window_labelled_rows", "Labelled rows of the latest window.", signalLabels...)
	descPredicted = desc("window_predictions", "Predictions of the latest window, labelled or not.", keyLabels...)
	descCoverage  = desc("label_coverage_ratio",
		"Labelled rows per prediction of the latest window.", keyLabels...)
	descLag = desc("label_lag_seconds",
		"Label time minus prediction time.", append(slices.Clone(keyLabels), "percentile")...)
	descAt = desc("window_end_timestamp_seconds",
		"End of the label pane that the latest window was taken at.", keyLabels...)
	descRevision = desc("calibrator_revision",
		"Revision of the calibrator in force; 0 is the identity.", modelLabels...)
	descAlert = desc("alert_state",
		"1 while the rule is in this state: pending, firing, or inhibited by another alert that stands for it.",
		"model", "version", "slice", "rule", "severity", "state")
	descRefit = desc("refit_state",
		"1 for the outcome of the newest refit: published, kept or failed.", "model", "version", "reason", "result")
	descRefitAt = desc("refit_decided_timestamp_seconds",
		"Event time of the newest refit decision.", modelLabels...)
	descPublished = desc("calibrator_published_timestamp_seconds",
		"Event time at which the newest calibrator of a reason was published.", "model", "version", "reason")
	descPooled = desc("pooled_values",
		"Values of a slice column that have no statistics of their own and are pooled in this slice.",
		"model", "version", "slice")
	descLeftOut = desc("export_slices_left_out",
		"Keys of slices that were not exported because others are worse.")
	descDropped = desc("export_dropped_keys", "Keys that were not exported because there are too many.")
	descCount   = desc("events_total",
		"Rows and messages by what became of them; docs/metrics.md lists the events.",
		"task", "partition", "event", "reason")
	descWaiting      = desc("waiting_rows", "Rows that wait in the join.", "partition", "kind")
	descArchiveWaits = desc("archive_waiting_rows",
		"Archived rows whose file is not in the directory yet.", "partition", "kind")
	descUnaccount = desc("rows_unaccounted",
		"Rows of a shard whose fates do not add up; anything but 0 is a defect.", "partition")
	descWatermark = desc("watermark_timestamp_seconds",
		"Event time up to which a task has everything.", taskLabels...)
	descCaughtUp = desc("task_caught_up", "1 if the task has read to the end of its log.", taskLabels...)
	descSaved    = desc("task_saved_timestamp_seconds",
		"When everything that a task had processed was last seen to be in a checkpoint.", taskLabels...)
	descOffset = desc("task_next_offset", "First offset not yet in a checkpoint.", "task", "partition", "input")
)

// Describe implements prometheus.Collector: the metrics are not known before a scrape.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- descDropped }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	revision := map[modelKey]int{}
	latest := spoken(c.history, c.Silent)
	snaps, leftOut, dropped := exported(c.history, latest, c.Worst)
	for i := range snaps {
		collectSnapshot(ch, &snaps[i])
		m := modelKey{snaps[i].Model, snaps[i].Version}
		revision[m] = max(revision[m], inForce(&snaps[i]))
	}
	collectPooled(ch, latest)
	gauge(ch, descLeftOut, float64(leftOut))
	gauge(ch, descDropped, float64(dropped))
	for m, r := range revision {
		gauge(ch, descRevision, float64(r), m.model, m.version)
	}
	for _, a := range exportedAlerts(c.history) {
		state := a.State
		if a.InhibitedBy != "" {
			state = "inhibited"
		}
		if a.State != "resolved" {
			gauge(ch, descAlert, 1, a.Model, a.Version, a.Slice, a.Rule, a.Severity, state)
		}
	}
	collectRefits(ch, c.history)
	tasks := c.tasks()
	c.saved.see(tasks, time.Now())
	for _, t := range tasks {
		collectTask(ch, t)
		gauge(ch, descSaved, float64(c.saved.of(t).UnixMilli())/1e3, t.Task, strconv.Itoa(t.Partition))
	}
}

// collectRefits shows the newest decision of every model version, and when it last published for each reason: the
// decision that follows may come before the next scrape.
func collectRefits(ch chan<- prometheus.Metric, h *history.History) {
	newest := map[modelKey]record.Calibrator{}
	type byReason struct {
		modelKey
		reason string
	}
	published := map[byReason]record.Time{}
	for _, d := range h.Calibrators("", "", 0) { // oldest first
		if d.Refused() {
			continue
		}
		m := modelKey{d.Model, d.Version}
		if newest[m] = d; d.Published && !d.DecidedAt.IsZero() {
			published[byReason{m, d.Reason}] = d.DecidedAt
		}
	}
	for p, at := range published {
		gauge(ch, descPublished, float64(at.UnixNano())/1e9, p.model, p.version, p.reason)
	}
	for m, d := range newest {
		gauge(ch, descRefit, 1, m.model, m.version, d.Reason, refitResult(&d))
		if !d.DecidedAt.IsZero() {
			gauge(ch, descRefitAt, float64(d.DecidedAt.UnixNano())/1e9, m.model, m.version)
		}
	}
}

// refitResult is published; kept where the candidate was no better than the calibrator in force, or the labels could
// not tell; failed where there was no candidate to compare.
func refitResult(d *record.Calibrator) string {
	switch {
	case d.Published:
		return "published"
	case d.Evidence.TestRows > 0, d.Reason == record.ReasonLabels:
		return "kept"
	}
	return "failed"
}

func inForce(s *record.Snapshot) int {
	if s.InForce == nil {
		return 0
	}
	return s.InForce.Version
}

func collectSnapshot(ch chan<- prometheus.Metric, s *record.Snapshot) {
	key := []string{s.Model, s.Version, s.Slice, s.Window.Name}
	collectMetrics(ch, &s.Raw, append(key[:4:4], "raw"))
	collectMetrics(ch, &s.Calibrated, append(key[:4:4], "calibrated"))
	if s.Served != nil {
		collectMetrics(ch, s.Served, append(key[:4:4], "served"))
	}
	if s.Window.Kind == "time" {
		gauge(ch, descPredicted, float64(s.Predictions), key...)
		optional(ch, descCoverage, s.Coverage, key...)
	}
	if s.Labelled > 0 {
		gauge(ch, descLag, s.Lag.P50, append(key[:4:4], "50")...)
		gauge(ch, descLag, s.Lag.P90, append(key[:4:4], "90")...)
		gauge(ch, descLag, s.Lag.P99, append(key[:4:4], "99")...)
	}
	if s.Unlabelled != nil {
		collectUnlabelled(ch, s.Unlabelled, key)
	}
	if !s.At.IsZero() {
		gauge(ch, descAt, float64(s.At.UnixNano())/1e9, key...)
	}
}

func collectMetrics(ch chan<- prometheus.Metric, m *record.Metrics, labels []string) {
	gauge(ch, descRows, float64(m.N), labels...)
	for _, x := range []struct {
		d *prometheus.Desc
		v *float64
	}{{descECE, m.ECE}, {descECENull, m.ECENull}, {descECELo, m.ECELo}, {descECEHi, m.ECEHi}, {descAccuracy,
		m.Accuracy},
		{descConfidence, m.MeanConfidence}, {descNLL, m.NLL}, {descBrier, m.Brier}, {descCWECE, m.CWECE}} {
		optional(ch, x.d, x.v, labels...)
	}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func optional(ch chan<- prometheus.Metric, d *prometheus.Desc, v *float64, labels ...string) {
	if v != nil {
		gauge(ch, d, *v, labels...)
	}
}
