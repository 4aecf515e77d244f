// Package pipeline is the runtime: sources, shards, watermarks, checkpoints and the two stages.
package pipeline
