package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline/output"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/cuda"
	"github.com/plumbline/plumbline/trainer/backend/gorgonia"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
	"github.com/plumbline/plumbline/trainer/service"
)

// newTrainerRunner is what trains: the configured command, or the recipes.
func newTrainerRunner(cfg config.Config, log *slog.Logger) (service.Runner, error) {
	l := trainerLoader{cfg: cfg, log: log}
	if len(cfg.Trainer.Command) > 0 {
		c := &service.Command{Args: cfg.Trainer.Command, Grace: 10 * time.Second, Log: log}
		if l.archive() != "" || len(cfg.Trainer.Files) > 0 {
			c.Load = l.load
		}
		return c, nil
	}
	if l.archive() == "" && len(cfg.Trainer.Files) == 0 {
		return nil, fmt.Errorf("nothing to train on: set archive.directory, trainer.archive or trainer.files")
	}
	gemm := blas.Best(log, 0)
	return &service.Recipes{Load: l.load, Plan: trainerPlan, GEMM: gemm, Bins: cfg.Stats.Bins, SaveEvery: 2 * time.Second,
		Backend: func() (backend.Backend, error) { return trainerBackend(cfg.Trainer, gemm, log) }}, nil
}

// trainerPlan gives a recipe by its name, or from its file.
func trainerPlan(name string, seed uint64) ([]recipe.Named, bool, error) {
	f := trainFlags{recipe: name}
	f.set.Seed = seed
	p, err := f.named(false)
	for i := range p.recipes {
		p.recipes[i].Config.Seed = seed
		if err == nil {
			err = p.recipes[i].Config.Validate()
		}
	}
	return p.recipes, p.auto(), err
}

// trainerBackend opens what computes; auto and cuda take the device where there is one.
func trainerBackend(t config.Trainer, gemm head.GEMM, log *slog.Logger) (backend.Backend, error) {
	switch t.Backend {
	case "go":
		return backend.Go{GEMM: gemm}, nil
	case "gorgonia":
		return gorgonia.Backend{GEMM: gemm}, nil
	}
	return orCPU(&cuda.Backend{Device: t.Device}, gemm, log), nil
}

// trainerLoader reads the rows of requests.
type trainerLoader struct {
	cfg config.Config
	log *slog.Logger
}

// archive is the directory of archived rows, "" where there is none.
func (l trainerLoader) archive() string {
	if l.cfg.Trainer.Archive != "" {
		return l.cfg.Trainer.Archive
	}
	return l.cfg.Archive.Directory
}

// trainerRows is what the evidence says about rows.
type trainerRows struct {
	data.Used
	From       string   `json:"from"`
	To         string   `json:"to"`
	Outside    int      `json:"outside"` // rows that were read and are not of the request's range
	Unlabelled int      `json:"unlabelled"`
	NoFeatures int      `json:"no_features"`
	Files      []string `json:"files,omitempty"`
	// Archive is the directory; Settled says that it went on beyond the range when it was read.
	Archive      string `json:"archive,omitempty"`
	ArchiveFiles int    `json:"archive_files,omitempty"`
	Settled      bool   `json:"settled"`
}

// load implements service.Load.
func (l trainerLoader) load(ctx context.Context, r output.Finetune) (service.Rows, error) {
	current, err := l.current(r)
	if err != nil {
		return service.Rows{}, err
	}
	used := trainerRows{From: r.Data.From, To: r.Data.To}
	read := l.archived
	if l.archive() == "" {
		read = l.files
	}
	all, err := read(ctx, r, &used)
	if err != nil {
		return service.Rows{}, err
	}
	if current != nil && (current.D() != all.D || current.K() != all.K) {
		return service.Rows{}, fmt.Errorf("%w: rows of %d features and %d classes, the head that serves takes %d and gives %d", service.ErrHopeless, all.D, all.K, current.D(), current.K())
	}
	train, valid, split, err := all.Split(data.SplitConfig{Validation: l.cfg.Trainer.Validation, MaxRows: l.cfg.Trainer.MaxRows, Seed: r.Seed})
	if err != nil {
		return service.Rows{}, err
	}
	used.Used = split
	return service.Rows{Train: all.Select(train), Valid: all.Select(valid), Current: current, Used: used}, nil
}

// files are the rows of trainer.files that are of the request's range.
func (l trainerLoader) files(_ context.Context, r output.Finetune, used *trainerRows) (*data.Set, error) {
	from, to, err := dataRange(r)
	if err != nil {
		return nil, err
	}
	out := &data.Set{K: r.Classes}
	for _, file := range l.cfg.Trainer.Files {
		var u trainRows
		s, err := (trainFlags{}).readFeatures(inputFlags{}, file, r.Classes, &u)
		if err != nil {
			return nil, err
		}
		if out.D == 0 {
			out.D = s.D
		}
		if s.D != out.D {
			return nil, fmt.Errorf("%w: %s: %d features a row, the files before have %d", service.ErrHopeless, file, s.D, out.D)
		}
		used.Unlabelled, used.NoFeatures, used.Files = used.Unlabelled+u.Unlabelled, used.NoFeatures+u.NoFeatures, append(used.Files, file)
		used.Outside += appendRange(out, s, from, to)
	}
	if out.N() == 0 {
		return nil, fmt.Errorf("no row of %v is of %s to %s: %d are of other times", l.cfg.Trainer.Files, r.Data.From, r.Data.To, used.Outside)
	}
	return out, nil
}

// appendRange copies the rows with a time in [from, to); those of files without times are all taken. It returns how many
// were not.
func appendRange(dst, s *data.Set, from, to int64) (outside int) {
	var scratch []float32
	for i := range s.N() {
		if s.Time != nil && (s.Time[i] < from || s.Time[i] >= to) {
			outside++
			continue
		}
		scratch = s.Chunk(scratch, i, 1)
		dst.X, dst.Y = append(dst.X, scratch...), append(dst.Y, s.Y[i])
		if s.Time != nil {
			dst.Time = append(dst.Time, s.Time[i])
		}
	}
	return outside
}

// current is the head that serves a version: the configured one, or the result that it came from. nil: not known.
func (l trainerLoader) current(r output.Finetune) (*head.Head, error) {
	file := ""
	for _, h := range l.cfg.Trainer.Heads {
		if h.Model == r.Model && h.Version == r.Version {
			file = h.File
			break
		}
	}
	if own := filepath.Join(l.cfg.Trainer.Dir, "jobs", service.JobDir(r.Model+"/"+r.Version), "result", service.FileHead); file == "" && fileExists(own) {
		file = own
	}
	for _, h := range l.cfg.Trainer.Heads {
		if file == "" && h.Model == r.Model && h.Version == "" {
			file = h.File
		}
	}
	if file == "" {
		l.log.Warn("the head that serves is not known: trainings begin with a fresh one (trainer.heads)", "model", r.Model, "version", r.Version)
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trainer.heads: %w", err)
	}
	h, _, err := artefact.ReadSafetensors(text)
	if err != nil {
		return nil, fmt.Errorf("%w: trainer.heads: %s: %w", service.ErrHopeless, file, err)
	}
	return h, nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
