// Package operators is the table of the stages that a batch passes through in a shard, in order:
//
//	validate   rows that must be wrong are rejected, and their message goes to the dead-letter topic
//	join       predictions wait for their labels, and labels for their predictions
//	archive    labelled rows with features go to files
//	apply      the calibrated stream
//	shadow     heads that do not serve yet run on the features of the stream
//	stats      sums by model version, slice and pane, which the model task gets
//
// Each is a package below this one, and none imports another: what one decides reaches the next in the batch that it
// emits. A new stage is one package, with a Config, New(Config, pipeline.Host) and Stage(), and its line in the table.
// Package internal/engine makes the Config from the configuration file and calls Chain.
//
// Package repartition stands beside the shard: it writes the keyed topics that shards read. Package model is the other
// side of the panes topic. Packages inforce and slicing hold the rules that the shards and the model task share.
package operators
