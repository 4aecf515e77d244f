package engine

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/sinks/metrics"
	"github.com/plumbline/plumbline/sinks/otlp"
)

// traces are the spans of records and the latencies between stages.
type traces struct {
	latencies metrics.Latencies
	tracer    *tracing.Tracer // nil = nothing is traced
	spans     *otlp.Exporter  // of the tracer
}

// start starts to send spans, if a collector is configured. stop sends those that wait.
func (t *traces) start(c otlp.Config, log *slog.Logger) (stop func(), err error) {
	if c.Endpoint == "" {
		return func() {}, nil
	}
	of := otlp.Process{Instance: Hostname(), Version: buildinfo.Name()}
	if t.spans, err = otlp.New(c, of, log); err != nil {
		return nil, err
	}
	t.tracer = &tracing.Tracer{Ratio: c.Ratio, Export: t.spans.Export}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.spans.Run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

// laneOf returns the tracer's lane for a task, which writes to topics.
func (t *traces) laneOf(task, group string, topics map[pipeline.Stream]string) *tracing.Lane {
	return tracing.NewLane(tracing.Settings{Tracer: t.tracer, Observe: t.latencies.Of, Task: task, Group: group,
		Topic: func(stream string) string { return topics[pipeline.Stream(stream)] }})
}

// tracingOver counts the records that are not traced because there are too many.
func tracingOver(t *tracing.Tracer) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "plumbline_traces_over_limit_total",
		Help: "Records that were to be traced and are not, because others of that second are.",
	}, func() float64 { return float64(t.Over()) })
}

// collectors are the metrics of traces.
func (t *traces) collectors() []prometheus.Collector {
	if t.tracer == nil {
		return []prometheus.Collector{t.latencies}
	}
	return []prometheus.Collector{t.latencies, t.spans, tracingOver(t.tracer)}
}
