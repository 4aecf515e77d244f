package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/feed"
)

// inputFlags name arrays of npz files; they hold for every FILE argument.
type inputFlags struct{ array, labels string }

func (f *inputFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.array, "array", "", "scores `array` of npz files, where FILE does not name it")
	cmd.Flags().StringVar(&f.labels, "labels", "", "labels `array` of npz files")
}

func (f inputFlags) open(file string) (*table.Table, error) {
	return feed.OpenTable(file, table.Options{Array: f.array, Labels: f.labels})
}
