package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// State says how a check ended.
type State string

// Bad stops the pipeline or loses data. Warn may. Unknown is a check that could not be made.
const (
	OK      State = "ok"
	Warn    State = "warn"
	Bad     State = "bad"
	Unknown State = "unknown"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what mends it
}

// Status is what a running process says of itself; see GET /api/v1/status.
type Status struct {
	Ready   bool   `json:"ready"`
	Because string `json:"not_ready_because"`
	Process struct {
		Tasks []struct {
			Task   string           `json:"task"`
			Counts map[string]int64 `json:"counts"`
		} `json:"tasks"`
		Failing []struct {
			Task  string `json:"task"`
			Cause string `json:"cause"`
		} `json:"failing"`
	} `json:"process"`
}

// Options say what to look at.
type Options struct {
	Config  config.Config
	Records int // of a partition of an input, from its end
	// Ask asks a running process; nil where none is asked.
	Ask func(ctx context.Context) (Status, error)
	// Foreign returns how many tasks have checkpoints, and why this build cannot read those of some.
	Foreign func(ctx context.Context) (tasks int, foreign []error, err error)
	Log     *slog.Logger
}

// doctor is one examination.
type doctor struct {
	Options
	client   *kafka.Client
	dialer   *kafka.Dialer
	findings []Finding
	uses     []use
	shards   int  // that there are, or will be
	split    bool // topics are split for them
	topics   map[string]kafkaclient.Topic
	hidden   map[string]bool // topics that this user may not see
	noCreate map[string]bool // topics that are not there, or not to be seen, and that this user may not make
}

// Run makes all checks.
func Run(ctx context.Context, o Options) (Report, error) {
	client, dialer, err := kafkaclient.New(o.Config.Kafka)
	if err != nil {
		return Report{}, err
	}
	d := &doctor{Options: o, client: client, dialer: dialer}
	if d.brokers(ctx) {
		d.checkTopics()
		d.settings(ctx)
		d.permissions(ctx)
		d.positions(ctx)
		d.inputs(ctx)
		d.letters(ctx)
		d.state(ctx)
	}
	d.running(ctx)
	d.disks()
	return Report{d.findings}, ctx.Err()
}

// state says whether this build reads what the one before has written: where it does not, an upgrade would stop half
// way, with states that only one of the builds reads.
func (d *doctor) state(ctx context.Context) {
	tasks, foreign, err := d.Foreign(ctx)
	switch {
	case err != nil:
		d.say("state", Unknown, "", "%v", err)
	case len(foreign) > 0:
		d.say("state", Bad, "stay with the build that wrote it; docs/operations.md#life-of-a-deployment",
			"%d of %d tasks have a state that this build cannot read: %v", len(foreign), tasks, foreign[0])
	case tasks > 0:
		d.say("state", OK, "", "this build reads the checkpoints of all %d tasks that have one", tasks)
	}
}

func (d *doctor) say(check string, s State, do, format string, args ...any) {
	d.findings = append(d.findings, Finding{Check: check, State: s, Found: fmt.Sprintf(format, args...), Do: do})
}

func (d *doctor) spec() kafkaio.TailSpec {
	return kafkaio.TailSpec{Client: d.client, MaxBytes: d.Config.Kafka.FetchMax, Log: d.Log}
}

// patience bounds a question to the brokers.
const patience = 15 * time.Second
