// Package artefact writes and reads trained heads: safetensors for training on, ONNX for serving.
//
// Tensors have the names that PyTorch gives nn.Sequential(Linear[, ReLU, Linear]): "0.weight", "0.bias", "2.weight",
// "2.bias", so that load_state_dict takes the file as it is. What is read is checked against the length of the file
// before memory is taken for it.
//
// Heads come from package head and go there; package service and the command train keep the bytes. The package must not
// know files, requests or trainings.
package artefact
