package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// taskTopics is no task of a group.
const taskTopics = "topics"

// topicsWatch asks repeatedly whether topics are the same ones and can be used. It shows, as a task that fails, that
// some cannot. The tasks that need them wait, and go on by themselves once they can.
type topicsWatch struct {
	*deployment.Deployment
	process *process
	before  bool   // at the last look, too: a topic may have been made a moment ago
	said    string // which topics, and why; "" = there is no such task
	end     func() // ends it
}

// run returns the error that a topic was made again. Partitions that nobody reads, and topics that cannot be used, are
// shown as failing tasks.
func (w *topicsWatch) run(ctx context.Context, every time.Duration) error {
	topics := [...]string{w.Config.Topics.Logits, w.Config.Topics.Labels, w.Config.Topics.Panes}
	var named [len(topics)]atomic.Bool
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for i, topic := range topics {
			w.nameUnread(ctx, topic, i == 2, &named[i])
		}
		w.look(ctx)
		if err := w.MadeAgain(ctx); err != nil {
			return err
		}
	}
}

// look asks once which topics cannot be used.
func (w *topicsWatch) look(ctx context.Context) {
	err, now := w.unusable(ctx), ""
	if err != nil && w.before {
		now = err.Error()
	}
	w.before = err != nil
	if now == w.said {
		return
	}
	if w.said != "" {
		w.end()
	}
	if w.said = now; now == "" {
		w.Log.Info("all topics can be used again")
		return
	}
	while, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	w.end = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		_ = w.process.attempts.Run(while, attempts.ID{Task: taskTopics}, func(context.Context, *attempts.Guard) error {
			return attempts.Lasting(err)
		})
	}()
}

// unusable returns an error that names the topics that this deployment reads and writes and that cannot be used.
// Dead letters stop nothing, and those that are lost are counted. If no broker answers, nothing is known.
func (w *topicsWatch) unusable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deployment.IDPatience)
	defer cancel()
	used := map[string]bool{w.Config.Topics.Logits: true, w.Config.Topics.Labels: true}
	for _, topic := range w.Config.InputTopics() {
		used[topic] = true
	}
	for stream, topic := range outputTopics(*w.Config) {
		used[topic] = used[topic] || stream != pipeline.StreamDeadLetter
	}
	used[w.Config.Topics.Checkpoints] = w.Config.Checkpoints.Store == pipeline.StoreTopic
	maps.DeleteFunc(used, func(topic string, used bool) bool { return topic == "" || !used })
	found, err := kafkaio.UnusableTopics(ctx, w.Client, slices.Sorted(maps.Keys(used))...)
	if err != nil {
		w.Log.Debug("state of topics", "err", err)
	}
	said := map[string]bool{}
	var all []string
	for _, u := range append(found, w.process.unread()...) {
		if !said[u.Topic] {
			said[u.Topic] = true
			all = append(all, u.Err.Error())
		}
	}
	if all == nil {
		return nil
	}
	return errors.New(strings.Join(all, "; "))
}

// nameUnread reports a failing task for as long as a topic has partitions that nobody reads.
func (w *topicsWatch) nameUnread(ctx context.Context, topic string, panes bool, named *atomic.Bool) {
	plan := w.Plan()
	if topic == "" || plan.Split && !panes || named.Load() {
		return
	}
	id, of := attempts.ID{Task: "shard", Partition: plan.Of}, plan.Of
	what := fmt.Sprintf("rows in what is beyond %d are not read. This takes them: plumbline scale --config FILE "+
		"--partitions N --by NAME --why REASON", plan.Of)
	if panes {
		id, of = attempts.ID{Task: "model", Partition: w.Panes()}, w.Panes()
		what = "nothing is written to what is beyond, and nothing is missing"
	}
	n, err := kafkaio.Partitions(ctx, w.Client, topic)
	if err != nil {
		w.Log.Debug("partitions of a topic", "topic", topic, "err", err)
	}
	if err != nil || n <= of {
		return
	}
	named.Store(true)
	cause := attempts.Lasting(fmt.Errorf("topic %s has %d partitions, and had %d when the deployment began: %s", topic,
		n, of, what))
	go func() {
		defer named.Store(false)
		while, stop := w.Book.While(ctx, func(now scale.Plan) bool { return now.Of == plan.Of })
		defer stop()
		_ = w.process.attempts.Run(while, id, func(context.Context, *attempts.Guard) error { return cause })
	}()
}
