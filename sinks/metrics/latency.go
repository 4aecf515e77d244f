package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// latencyBuckets are in seconds: a stage takes milliseconds, a pane its length.
var latencyBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// Latencies is the histogram of what steps of tasks take.
type Latencies struct{ *prometheus.HistogramVec }

// NewLatencies returns an empty histogram.
func NewLatencies() Latencies {
	return Latencies{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "plumbline_latency_seconds",
		Help:    "What steps of a task take; docs/metrics.md lists them.",
		Buckets: latencyBuckets,
	}, []string{"task", "step"})}
}

// Of returns what adds latencies of a task's step; with a trace, one becomes the exemplar of its bucket.
func (l Latencies) Of(task, step string) func(d time.Duration, trace string) {
	o := l.WithLabelValues(task, step)
	x, takes := o.(prometheus.ExemplarObserver)
	return func(d time.Duration, trace string) {
		if takes && trace != "" {
			x.ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace})
			return
		}
		o.Observe(d.Seconds())
	}
}
