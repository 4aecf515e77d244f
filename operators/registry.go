package operators

import (
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/archive"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/pair"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

// Config has the configuration of every stage; the chain has no stage whose configuration is nil.
type Config struct {
	Validate *validate.Config
	Pair     *pair.Options
	Join     *join.Options
	Archive  *archive.Options
	Apply    *apply.Options
	Shadow   *shadow.Options
	Stats    *stats.Options
}

// stages is the table: a batch passes through them in this order.
var stages = []entry{
	stage(func(c *Config) *validate.Config { return c.Validate }, validate.New),
	stage(func(c *Config) *pair.Options { return c.Pair }, pair.New),
	stage(func(c *Config) *join.Options { return c.Join }, join.New),
	stage(func(c *Config) *archive.Options { return c.Archive }, archive.New),
	stage(func(c *Config) *apply.Options { return c.Apply }, apply.New),
	stage(func(c *Config) *shadow.Options { return c.Shadow }, shadow.New),
	stage(func(c *Config) *stats.Options { return c.Stats }, stats.New),
}

// entry makes a stage; ok is false where the configuration has none.
type entry func(c *Config, h pipeline.Host) (st pipeline.Stage, ok bool)

// stage is the entry of an operator: where its configuration is, and its constructor.
func stage[C any, O interface{ Stage() pipeline.Stage }](of func(*Config) *C, build func(C, pipeline.Host) O) entry {
	return func(c *Config, h pipeline.Host) (pipeline.Stage, bool) {
		own := of(c)
		if own == nil {
			return pipeline.Stage{}, false
		}
		return build(*own, h).Stage(), true
	}
}

// Chain builds the stages of a shard. Close them with the shard.
func Chain(c Config, h pipeline.Host) []pipeline.Stage {
	var out []pipeline.Stage
	for _, e := range stages {
		if st, ok := e(&c, h); ok {
			out = append(out, st)
		}
	}
	return out
}
