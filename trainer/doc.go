// Package trainer fine-tunes the head of a classifier on archived features and labels. The parts:
//
//   - [github.com/plumbline/plumbline/trainer/loss]: losses and their gradients with respect to logits
//   - [github.com/plumbline/plumbline/trainer/philox]: the counter-based generator of orders, masks and starts
//   - [github.com/plumbline/plumbline/trainer/data]: features and labels, splits by time, mini-batch orders
//   - [github.com/plumbline/plumbline/trainer/head]: linear and bottleneck heads, forward and backward
//   - [github.com/plumbline/plumbline/trainer/artefact]: heads as safetensors and ONNX
//   - [github.com/plumbline/plumbline/trainer/optim]: momentum, weight decay, learning-rate schedules
//   - [github.com/plumbline/plumbline/trainer/backend]: who holds parameters and data, and runs epochs
//   - [github.com/plumbline/plumbline/trainer/recipe]: whole trainings, their reports and checkpoints
package trainer
