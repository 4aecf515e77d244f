package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// host is what the tasks of a run have in common, whichever their stage: where their state, their outputs and their
// status go. Its methods make what every stage needs for its group and its tasks.
type host struct {
	*deployment.Deployment
	process   *process
	traces    *traces
	sink      pipeline.Sink
	anew      string               // see Engine.Anew
	restoring func() (done func()) // see Engine.Restoring
}

// group returns the group of a stage. stage names it in the status; of is how many tasks it has.
func (h *host) group(id, stage string, of int, topics ...string) kafkaio.Group {
	g := h.newGroup(id, topics...)
	g.Silent = h.process.heardNothing(stage)
	h.process.due.follow(&g, stage, of)
	return g
}

// newGroup returns a group that is no stage's.
func (h *host) newGroup(id string, topics ...string) kafkaio.Group {
	return kafkaio.Group{ID: id, Brokers: h.Config.Kafka.Brokers, Dialer: h.Dialer, Topics: topics, Log: h.Log,
		Client: h.Client, Session: h.Config.Kafka.Session, Members: filepath.Join(workDir(h.Config), "members")}
}

// laneOf returns the tracer's lane for a task.
func (h *host) laneOf(task, group string) *tracing.Lane {
	return h.traces.laneOf(task, group, outputTopics(*h.Config))
}

// runner returns the runner of a task.
func (h *host) runner(stage string, guard pipeline.Guard, trace *tracing.Lane) pipeline.Runner {
	return pipeline.Runner{Group: h.Config.Group + "/" + stage, Store: h.Store, Sink: h.sink,
		Interval: h.Config.Checkpoints.Interval, Restoring: h.restoring, Guard: guard, Trace: trace, Log: h.Log,
		Anew: h.anew, Confirm: h.Confirmed.Now}
}

// source returns what opens the topics of a task where its state ends.
func (h *host) source(name string, topics map[pipeline.Input]string, p int,
	commit kafkaio.CommitFunc) func(map[pipeline.Input]int64) (pipeline.Opened, error) {
	_, models := topics[pipeline.Panes]
	return func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
		src := kafkaio.NewSource(kafkaio.Spec{
			Client:      h.Client,
			Topics:      topics,
			Partition:   p,
			Next:        next,
			MaxBytes:    h.Config.Kafka.FetchMax,
			IdleTimeout: h.Config.EventTime.IdleTimeout,
			MaxAhead:    maxAhead(h.Config, models),
			Clock:       h.Clock,
			Commit:      commit,
			Gate:        &h.process.gate,
			ReportPause: !models,
			Log:         h.Log,
		})
		h.process.reads(name, src)
		return pipeline.Opened{Source: src, Visibility: src}, nil
	}
}

// lasting marks errors that only a person can fix: the task is retried each minute.
func lasting(err error) error {
	if errors.Is(err, pipeline.ErrUnusable) || errors.Is(err, kafka.OffsetOutOfRange) {
		return attempts.Lasting(err)
	}
	return err
}

// maxAhead is that of records; panes have no time of producers.
func maxAhead(c *config.Config, models bool) time.Duration {
	if models {
		return 0
	}
	return c.EventTime.MaxAhead
}

// gone adds advice to the error of a task whose records have left the log.
func gone(stage string, p int, err error) error {
	if err == nil || !errors.Is(err, kafka.OffsetOutOfRange) {
		return err
	}
	return fmt.Errorf("%w. %s", err, reset.Command(reset.Task(stage, p)))
}

// Names of stages whose tasks a group gives.
const (
	stageShards = "shard"
	stageModels = "model"
)

func taskName(stage string, partition int) string { return fmt.Sprintf("%s-%d", stage, partition) }
