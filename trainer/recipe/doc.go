// Package recipe runs whole trainings of a head on a backend: plain training with any loss, AU fine-tuning from the
// current head, MaC-Cal, interleaved losses, early stopping on validation rows, mixup of features, checkpoints.
//
//	cfg := recipe.AU()
//	cfg.Seed = 1
//	h, report, err := recipe.Run(ctx, cfg, recipe.Input{Train: train, Valid: valid, Current: head}, backend.Go{}, nil)
//
// [New] prepares a [Training], [Training.Step] runs an epoch; [Run] does both to the end. [RunAuto] tries several
// recipes and takes the best by a test on the validation rows. [Refit] trains again with those rows.
//
// Rows come from package data, heads from package head; head and report go to the caller. The package must not know
// which device computes, where rows are from, or which job it is for.
//
// Choose hyper-parameters by validation NLL, never by validation ECE, which picks damaged heads. The same seed, rows
// and backend give the same bits on one kind of machine, also across a checkpoint.
package recipe
