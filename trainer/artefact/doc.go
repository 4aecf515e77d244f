// Package artefact writes and reads trained heads: safetensors for training on, ONNX for serving.
//
// Tensors have the names that PyTorch gives nn.Sequential(Linear[, ReLU, Linear]): "0.weight", "0.bias", "2.weight",
// "2.bias", so that load_state_dict takes the file as it is.
package artefact
