package artefact

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// classifierNames are the layers of classifiers in models of Hugging Face's transformers and of torchvision and timm,
// the first that a file has: with ReLU between where there are two.
var classifierNames = [][]string{
	{"pre_classifier.", "classifier."}, // DistilBERT
	{"classifier."},                    // BERT, ViT, ConvNeXt, Swin
	{"score."},                         // GPT-2, Llama, Mistral
	{"fc."},                            // torchvision's ResNet
	{"head."},                          // timm's ViT
	{"heads.head."},                    // torchvision's ViT
	{"classifier.1."},                  // a dropout before the layer
}

// layerNames are the beginnings of the names of the head's layers: as nn.Sequential numbers them, of a single layer
// under any name, or of the classifier of a whole model.
func layerNames(raw map[string]json.RawMessage) ([]string, error) {
	if len(raw) == 0 {
		return nil, errors.New("no tensors")
	}
	if _, ok := raw["0.weight"]; ok {
		return sequentialNames(raw)
	}
	if name, ok := strings.CutSuffix(slices.Sorted(maps.Keys(raw))[len(raw)-1], "weight"); ok && single(raw, name) {
		return []string{name}, nil
	}
	if _, ok := raw["classifier.out_proj.weight"]; ok {
		return nil, errors.New("classifier.out_proj: tanh is before it, allowed is ReLU; export the last layer alone")
	}
	for _, names := range classifierNames {
		if !slices.ContainsFunc(names, func(name string) bool { _, ok := raw[name+"weight"]; return !ok }) {
			return names, nil
		}
	}
	return nil, fmt.Errorf("no classifier among the tensors %q: allowed are 0.weight, 0.bias, 2.weight, …, "+
		"a single layer's weight and bias, and those of classifier, score, fc, head", some(raw))
}

// single says whether a file has nothing but one layer.
func single(raw map[string]json.RawMessage, name string) bool {
	_, bias := raw[name+"bias"]
	return len(raw) == 1 || len(raw) == 2 && bias
}

// sequentialNames counts the layers of an nn.Sequential, of which every second module is a ReLU; no other tensor may be
// there. A layer may be without a bias.
func sequentialNames(raw map[string]json.RawMessage) ([]string, error) {
	var names []string
	for read := 0; read < len(raw); read++ {
		if len(names) == maxLayers {
			return nil, fmt.Errorf("more than %d layers", maxLayers)
		}
		name := strconv.Itoa(2*len(names)) + "."
		if _, ok := raw[name+"weight"]; !ok {
			return nil, fmt.Errorf("no tensor %q; there are %q", name+"weight", some(raw))
		}
		if _, ok := raw[name+"bias"]; ok {
			read++
		}
		names = append(names, name)
	}
	return names, nil
}

// some are the first names of tensors.
func some(raw map[string]json.RawMessage) []string {
	names := slices.Sorted(maps.Keys(raw))
	return names[:min(len(names), 2*maxLayers)]
}
