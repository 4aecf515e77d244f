package recipe_test

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/recipe"
)

func ExampleRun() {
	rows := conformance.Rows(500, 1) // in order of time
	train, valid, used, err := rows.Split(data.SplitConfig{Validation: 0.2})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := recipe.MaCCalStable()
	cfg.Epochs, cfg.Seed = 10, 1
	in := recipe.Input{Train: rows.Select(train), Valid: rows.Select(valid)}
	h, report, err := recipe.Run(context.Background(), cfg, in, backend.Go{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, last := report.Epochs[0], report.Epochs[9]
	fmt.Println(used.Train, "rows train,", used.Validation, "validate; layers:", len(h.Layers))
	fmt.Println("NLL fell:", last.Valid.NLL < first.Valid.NLL, "- q at first:", first.Q)
	// Output:
	// 400 rows train, 100 validate; layers: 2
	// NLL fell: true - q at first: 0.5
}
