// Package onnx writes calibrators, and other small networks, as ONNX models, so that a model server applies them where
// it runs the classifier.
//
// [Calibrator] gives the graph of one calibrator: float32 logits in, float32 probabilities out. [Graph] is the builder
// under it, for operator set 17 and nothing more than such graphs need.
package onnx
