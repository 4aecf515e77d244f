package heads

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/trainer/service"
)

// Metrics collects requests and jobs as a process has seen them.
type Metrics struct{ Jobs func() []service.Job }

var (
	descJobs = prometheus.NewDesc("plumbline_finetune_jobs", "Requests for heads, by what became of them.",
		[]string{"model", "state"}, nil)
	descJobWaiting = prometheus.NewDesc("plumbline_finetune_waiting_seconds",
		"For how long, as seen here, a request has waited for a trainer, or for an attempt that comes further than "+
			"those that failed; 0 where none does.",
		[]string{"model"}, nil)
	descJobProgress = prometheus.NewDesc("plumbline_finetune_progress_ratio",
		"Share of the work that is done, of jobs that run.", []string{"model", "version", "trainer"}, nil)
	descJobNLL = prometheus.NewDesc("plumbline_finetune_validation_nll",
		"Validation NLL of the newest epoch, of jobs that run.", []string{"model", "version", "trainer"}, nil)
	descJobSilent = prometheus.NewDesc("plumbline_finetune_silent_seconds",
		"Since a running job has last given a sign of life.", []string{"model", "version", "trainer"}, nil)
	descJobAttempts = prometheus.NewDesc("plumbline_finetune_attempts", "Attempts so far, of jobs that run.",
		[]string{"model", "version"}, nil)
)

// Describe implements prometheus.Collector.
func (c Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descJobWaiting, descJobProgress, descJobNLL, descJobSilent,
		descJobAttempts} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c Metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	type state struct{ model, state string }
	counts, waiting := map[state]int{}, map[string]float64{}
	for _, j := range c.Jobs() {
		r := &j.Request
		counts[state{r.Model, j.State()}]++
		waiting[r.Model] = max(waiting[r.Model], j.Waiting(time.Now()).Seconds())
		if j.State() == service.StateRunning {
			gauge(descJobProgress, j.Beat.Done, r.Model, r.ShadowVersion, j.Trainer)
			gauge(descJobSilent, time.Since(j.Seen).Seconds(), r.Model, r.ShadowVersion, j.Trainer)
			gauge(descJobAttempts, float64(j.Attempt), r.Model, r.ShadowVersion)
			if j.Beat.NLL > 0 {
				gauge(descJobNLL, j.Beat.NLL, r.Model, r.ShadowVersion, j.Trainer)
			}
		}
	}
	for s, n := range counts {
		gauge(descJobs, float64(n), s.model, s.state)
	}
	for m, s := range waiting {
		gauge(descJobWaiting, s, m)
	}
}

// Jobs copies the jobs whose request is known.
func (t *State) Jobs() []service.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []service.Job
	for _, j := range t.queue.Jobs() {
		out = append(out, *j)
	}
	return out
}
