// Package metrics answers /metrics: it shows the latest calibration of every model, and the counts of the tasks of this
// process, to Prometheus.
//
// [Handler] reads sinks/history and the tasks' statuses at each scrape; it keeps nothing, but for when each task was
// last saved. Of many slices it shows the worst, and never more than [MaxSeries] in all. Other packages export metrics
// of their own as collectors, which Handler takes. docs/metrics.md lists every name, and a test here compares.
//
// The package knows names, labels and bounds. It must not compute a statistic.
package metrics
