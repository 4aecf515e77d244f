package engine

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// tuned says that the configuration has the loop go beyond refits.
func (rt *Engine) tuned() bool { return rt.Config.Trigger.Enabled || rt.Config.Heads.Shadow }

// followTuning reads the finetune and heads topics, from their start and for ever. ready is closed when they have been read
// to their end: shards that began before would take up heads late that were there in time.
func (r *KafkaRun) followTuning(ctx context.Context, g *errgroup.Group) (ready <-chan struct{}, err error) {
	done := make(chan struct{})
	if !r.tuned() {
		close(done)
		return done, nil
	}
	return done, r.tail(ctx, g, []kafkaio.Tailed{
		{Topic: r.Config.Topics.Finetune, Take: func(rec *pipeline.Record) error { return r.Tuning.Request(rec.Value) }},
		{Topic: r.Config.Topics.Heads, Take: func(rec *pipeline.Record) error { return r.Tuning.Record(rec.Value) }}}, func() { close(done) })
}

// tuningSpecs are the model tasks' part of the configuration.
func tuningSpecs(c *config.Config) (model.TriggerSpec, model.JudgeSpec) {
	t, h := c.Trigger, c.Heads
	return model.TriggerSpec{Enabled: t.Enabled, Recipe: t.Recipe, Rows: t.Rows, MinRows: t.MinRows, ReferenceRows: t.ReferenceRows, MaxECE: t.MaxECE,
			MaxAccDrop: t.MaxAccuracyDrop, MaxAURCRise: t.MaxAURCRise, Z: t.Z, For: int64(t.For), DataRows: t.DataRows, Cooldown: int64(t.Cooldown), Budget: t.Budget,
			BudgetPeriod: int64(t.BudgetPeriod), ShadowAfter: int64(t.ShadowAfter), Deadline: int64(t.Deadline)},
		model.JudgeSpec{Enabled: h.Shadow, Alpha: h.Alpha, NLLBound: h.NLLBound, MinRows: h.MinRows, MaxRows: h.MaxRows, MaxECERise: h.MaxECERise,
			MaxAccDrop: h.MaxAccuracyDrop, MaxAURCRis: h.MaxAURCRise, Watch: int64(h.Watch)}
}
