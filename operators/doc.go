// Package operators holds what happens to rows and panes, one file per operator. In a shard, in this order:
// validate, join, apply, stats. In a model task: barrier (merge over shards), window, score, detect, refit.
package operators
