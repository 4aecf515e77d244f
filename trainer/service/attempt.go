package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/pipeline/record"
)

// work is one attempt: the result that is there, or that the runner makes.
func (s *Service) work(ctx context.Context, r record.Finetune, attempt int) (record.Head, error) {
	if s.cfg.Timeout > 0 {
		var stop context.CancelFunc
		late := fmt.Errorf("not done within trainer.timeout, %s", s.cfg.Timeout)
		ctx, stop = context.WithTimeoutCause(ctx, s.cfg.Timeout, late)
		defer stop()
	}
	t := Task{Request: r, Attempt: attempt, Dir: filepath.Join(s.cfg.Dir, dirName(r.ID))}
	t.Progress = func(step string, done, nll float64) {
		select {
		case s.progress <- record.Job{ID: r.ID, Attempt: attempt, Step: step, Done: done, NLL: nll}:
		default: // the next one will say more
		}
	}
	final := filepath.Join(t.Dir, resultDir)
	if !exists(filepath.Join(final, FileReport)) {
		if err := s.train(ctx, t, final); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return record.Head{}, err
		}
	}
	res, err := ReadResult(final, r)
	if err != nil {
		return record.Head{}, errors.Join(err, os.RemoveAll(final))
	}
	sweepJob(t.Dir)
	return res.record(r, attempt, s.cfg.Name, s.cfg.InlineBytes)
}

// train has the runner make a result beside its place and moves it there.
func (s *Service) train(ctx context.Context, t Task, final string) error {
	if err := durable.MakeDir(t.Dir); err != nil {
		return err
	}
	text, err := json.MarshalIndent(t.Request, "", " ")
	if err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(t.Dir, FileRequest), text); err != nil {
		return err
	}
	if t.Result, err = os.MkdirTemp(t.Dir, "result-*.tmp"); err != nil {
		return err
	}
	defer os.RemoveAll(t.Result)
	if err := s.cfg.Runner.Run(ctx, t); err != nil {
		return err
	}
	if _, err := ReadResult(t.Result, t.Request); err != nil {
		return err
	}
	return publishDir(t.Result, final)
}

// sweepJob removes what attempts that were killed have left half written: there is a result now.
func sweepJob(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")) // a pattern that is right
	for _, path := range left {
		_ = os.RemoveAll(path) // if not now, then with the job's directory
	}
}
