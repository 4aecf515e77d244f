package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/arrowio/npy"
)

// model is one network's rows on one test set.
type model struct {
	group  string // the column of the tables
	name   string
	k      int
	z      []float32
	labels []int32
	probs  bool
}

// cifar10 is the group of many networks, over which the tables take the mean.
const cifar10 = "CIFAR-10, 19 nets"

// groups are the columns of the tables, and where their rows come from; an empty array stands for every one of
// float32 in the file.
var groups = []struct{ title, file, array, labels string }{
	{cifar10, "c10_chenyaofo19_logits", "", "test_labels"},
	{"CIFAR-10 ResNet-20, JPEG", "c10jpeg_resnet_logits", "resnet20", "test_labels"},
	{"CIFAR-10 ResNet-18, 78 %", "c10_resnet18_78acc_wasscal_logits", "test_logits", "test_labels"},
	{"CIFAR-10 WRN-16-4", "c10_wideresnet-16-4_netcal_probs", "test_probs", "test_labels"},
	{"MNIST CNN", "mnist_cnn_metacal", "test_logits", "test_labels"},
	{"CIFAR-100 ResNet-56", "c100_chenyaofo_logits", "resnet56", "test_labels"},
	{"CIFAR-100 VGG-16", "c100_chenyaofo_logits", "vgg16_bn", "test_labels"},
	{"CIFAR-100 WRN-16-4", "c100_wideresnet-16-4_netcal_probs", "test_probs", "test_labels"},
}

func load(folder string) ([]model, error) {
	var models []model
	for _, g := range groups {
		name := filepath.Join(folder, g.file+".npz")
		arrays, err := npy.ReadArchive(name)
		if err != nil {
			return nil, err
		}
		labels := arrays[g.labels].Int
		for _, array := range slices.Sorted(maps.Keys(arrays)) {
			a := arrays[array]
			if a.F32 == nil || g.array != "" && array != g.array {
				continue
			}
			if len(a.F32) != len(labels)*a.Columns() {
				return nil, fmt.Errorf("%s: %s: %d scores for %d labels", name, array, len(a.F32), len(labels))
			}
			models = append(models, model{
				group: g.title, name: g.file + "/" +
					array, k: a.Columns(), z: a.F32, labels: labels, probs: g.array == "test_probs",
			})
		}
	}
	return models, nil
}

// find returns the model of that name, which is one of the list.
func find(models []model, name string) *model {
	i := slices.IndexFunc(models, func(m model) bool { return m.name == name })
	return &models[i]
}
