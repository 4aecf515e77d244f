// Package proving has the section heads of the configuration: how a new head is tested in the stream before it serves.
//
// Two components read it, so it belongs to neither: the shards run heads as shadows (operators/shadow), and the model
// tasks compare them with the heads that serve (operators/model/finetune). The package knows keys and their limits. It
// must not know a head or a stream.
package proving
