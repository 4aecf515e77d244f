// Package onnx writes calibrators, and other small networks, as ONNX models, so that a model server applies them where
// it runs the classifier.
//
// [Calibrator] gives the graph of one calibrator: float32 logits in, float32 probabilities out. [Graph] builds graphs
// of operator set 17, with the few operators that they need. The package must not know files or model servers.
package onnx
