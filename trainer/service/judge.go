package service

import (
	"fmt"
	"path/filepath"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// judge scores the head of a program on the validation rows that were exported. One that they do not show to be better
// than the head that serves becomes an unchanged result.
func (c *Command) judge(t Task, res *Result, current *head.Head) error {
	valid, err := dataset.ReadRows(filepath.Join(t.Dir, fileValidation), res.Head.K())
	if err != nil {
		return fmt.Errorf("validation rows for %d classes: %w", res.Head.K(), err)
	}
	j, err := recipe.Judge(res.Head, current, valid)
	if err != nil {
		return fmt.Errorf("%w: %s on the validation rows: %w", ErrResult, FileHead, err)
	}
	than := "the head that serves"
	if current == nil {
		than = "the shares of the classes"
	}
	rep := res.Report
	rep.Why += fmt.Sprintf("; validation NLL %.4f, less that of %s %+.4f ± %.4f (standard error of %d blocks of time)",
		j.NLL, than, j.Over.Mean, j.Over.SE, j.Blocks)
	if j.Better {
		return WriteResult(t.Result, rep, nil)
	}
	c.Log.Warn("the head of the command is not better on the validation rows", "job", t.Request.ID, "why", rep.Why)
	rep.Outcome = record.OutcomeUnchanged
	return WriteResult(t.Result, rep, nil)
}
