package engine

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// tuned says that the configuration has the loop go beyond refits.
func (rt *Engine) tuned() bool { return rt.Config.Trigger.Enabled || rt.Config.Heads.Shadow }

// followTuning reads the finetune and heads topics, from their start and for ever. ready is closed when they have been
// read to their end: shards that began before would take up heads late that were there in time.
func (r *KafkaRun) followTuning(ctx context.Context, g *errgroup.Group) (ready <-chan struct{}, err error) {
	done := make(chan struct{})
	if !r.tuned() {
		close(done)
		return done, nil
	}
	return done, r.tail(ctx, g, []kafkaio.Tailed{
		{Topic: r.Config.Topics.Finetune, Take: r.Tuning.ReadRequest},
		{Topic: r.Config.Topics.Heads, Take: r.Tuning.ReadRecord}}, func() { close(done) })
}
