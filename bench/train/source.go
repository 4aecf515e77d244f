package main

import (
	"path/filepath"

	"github.com/plumbline/plumbline/arrowio/npy"
	tableio "github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

const (
	featureFile = "c10jpeg_resnet20_features.npz"
	classes     = 10
)

// source has the features of a real network, clean and corrupted, and the head that it was trained with.
type source struct {
	head      *head.Head
	sets      map[string]*data.Set
	backbones map[string]*backbone
}

func load(folder string) (*source, error) {
	s := &source{sets: map[string]*data.Set{}, backbones: map[string]*backbone{}}
	path := filepath.Join(folder, featureFile)
	for array, labels := range map[string]string{
		"train_features": "train_labels", "test_features": "test_labels",
		"gauss_noise_s1_f": "test_labels", "contrast_s3_f": "test_labels", "gauss_blur_s3_f": "test_labels",
	} {
		t, err := tableio.Open(path, tableio.Options{Array: array, Labels: labels})
		if err != nil {
			return nil, err
		}
		s.sets[array] = &data.Set{D: t.K, K: classes, X: t.Scores32, Y: t.Label}
	}
	var err error
	s.head, err = readHead(path)
	return s, err
}

// readHead reads the two arrays of the network's last layer.
func readHead(path string) (*head.Head, error) {
	a, err := npy.ReadArchive(path, "W", "b")
	if err != nil {
		return nil, err
	}
	return head.Linear(a["W"].F32, a["b"].F32)
}
