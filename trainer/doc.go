// Package trainer is the root of the packages that fine-tune the head of a classifier on archived features and labels;
// it has no code of its own. From the arithmetic up to the process:
//
//   - [github.com/plumbline/plumbline/trainer/philox]: the generator of orders, masks and initial weights
//   - [github.com/plumbline/plumbline/trainer/loss]: losses and their gradients with respect to logits
//   - [github.com/plumbline/plumbline/trainer/optim]: momentum, weight decay, learning-rate schedules
//   - [github.com/plumbline/plumbline/trainer/head]: linear and bottleneck heads, forward and backward
//   - [github.com/plumbline/plumbline/trainer/blas]: matrix products by OpenBLAS
//   - [github.com/plumbline/plumbline/trainer/data]: features and labels, splits by time, mini-batch orders
//   - [github.com/plumbline/plumbline/trainer/dataset]: such rows from files and from the archive
//   - [github.com/plumbline/plumbline/trainer/backend]: a device with parameters and data, which runs epochs
//   - [github.com/plumbline/plumbline/trainer/backends]: backends by name
//   - [github.com/plumbline/plumbline/trainer/recipe]: whole trainings, their reports and checkpoints
//   - [github.com/plumbline/plumbline/trainer/artefact]: heads as safetensors and ONNX
//   - [github.com/plumbline/plumbline/trainer/service]: jobs of the heads topic, in the trainer process
//   - [github.com/plumbline/plumbline/trainer/serve]: a trained head's logits in a shard
//
// Training stands beside the stream: requests come from the finetune topic, rows from the archive, heads go to the
// heads topic. Nothing here knows shards, panes or alarms.
package trainer
