// Package serve computes a head's logits in a shard, row by row.
//
// A row's logits are the same bits whatever rows come with it, so that the logits of a shadow head do not depend on how
// a stream is batched or split. A [Head] is made of a trained head.Head and is safe for concurrent use; the shadow
// stage gives it features and takes logits. The package must not know models, versions or batches.
package serve
