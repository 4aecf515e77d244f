package trainerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
	"github.com/plumbline/plumbline/trainer/service"
)

// ErrNothing means that a configuration names no rows.
var ErrNothing = errors.New("nothing to train on: set archive.directory, trainer.archive or trainer.files")

// NewRunner is what trains: the configured command, or the recipes.
func NewRunner(l Loader) (service.Runner, error) {
	cfg, log := l.Config, l.Log
	for i, h := range cfg.Trainer.Heads {
		if _, err := readServing(h.File); err != nil {
			return nil, fmt.Errorf("trainer.heads[%d].file, model %s: %w", i, h.Model, err)
		}
	}
	if len(cfg.Trainer.Command) > 0 {
		const grace = 10 * time.Second
		guard, err := GuardCommand(grace)
		if err != nil {
			return nil, err
		}
		c := &service.Command{Args: cfg.Trainer.Command, Guard: guard, Grace: grace, Log: log}
		if l.archive() != "" || len(cfg.Trainer.Files) > 0 {
			c.Load = l.Load
		}
		return c, nil
	}
	if l.archive() == "" && len(cfg.Trainer.Files) == 0 {
		return nil, ErrNothing
	}
	gemm := blas.Best(log, 0)
	return &service.Recipes{
		Load:      l.Load,
		Plan:      Plan,
		GEMM:      gemm,
		Bins:      cfg.Stats.Bins,
		SaveEvery: 2 * time.Second,
		Log:       log,
		Backend: func() (backend.Backend, error) {
			return backends.New(cfg.Trainer.Backend, backends.Options{GEMM: gemm, Device: cfg.Trainer.Device, Log: log})
		},
	}, nil
}

// Plan gives a recipe by its name, or from its file, with the seed of a request; auto where it has no name.
func Plan(name string, seed uint64) (recipes []recipe.Named, auto bool, err error) {
	name = cmp.Or(name, recipe.Auto)
	recipes, err = recipe.Lookup(name, seed)
	if err != nil {
		return nil, false, fmt.Errorf("recipe %q: %w", name, err)
	}
	for i := range recipes {
		recipes[i].Config.Seed = seed
	}
	return recipes, name == recipe.Auto, nil
}

// Loader reads the rows of requests.
type Loader struct {
	Config config.Config
	Log    *slog.Logger
	// bound is told the rows before a training begins, and its result is called at the end: the program may have the
	// garbage collected more often beside large ones. nil: nobody is told.
	bound func(*data.Set) (undo func())
}

// archive is the directory of archived rows, "" where there is none.
func (l Loader) archive() string {
	if l.Config.Trainer.Archive != "" {
		return l.Config.Trainer.Archive
	}
	return l.Config.Archive.Directory
}

// Rows is what the evidence says about rows.
type Rows struct {
	data.Used
	From       record.Time `json:"from"`
	To         record.Time `json:"to"`
	Outside    int         `json:"outside"` // rows that were read and are not of the request's range
	Unlabelled int         `json:"unlabelled"`
	NoFeatures int         `json:"no_features"`
	Repeated   int         `json:"repeated,omitempty"` // rows of an archive that were there before, by id and time
	// Files are those of trainer.files that were read.
	Files []string `json:"files,omitempty"`
	// Archive is the directory; Settled says that it went on beyond the range when it was read.
	Archive      string `json:"archive,omitempty"`
	ArchiveFiles int    `json:"archive_files,omitempty"`
	Settled      bool   `json:"settled"`
	// LeftOut says which files were not read, and why: of other model versions, gone, or damaged.
	LeftOut []string `json:"left_out,omitempty"`
	// Streamed says that features stayed in their files; FeatureBytes is what they take, or would, in memory.
	Streamed     bool  `json:"streamed"`
	FeatureBytes int64 `json:"feature_bytes"`
}

// Load implements service.Load.
func (l Loader) Load(ctx context.Context, r record.Finetune) (service.Rows, error) {
	current, file, err := l.current(r)
	if err != nil {
		return service.Rows{}, err
	}
	used := Rows{From: r.Data.From, To: r.Data.To}
	var read dataset.Rows
	s := dataset.NewSource(int64(l.Config.Trainer.MemoryBytes), &read)
	s.Bound = "trainer.memory_bytes"
	all, err := l.all(ctx, r, s, &used)
	if err == nil {
		err = fits(all, s, current, file)
	}
	var train, valid []int32
	if err == nil {
		t := &l.Config.Trainer
		train, valid, used.Used, err = all.Split(data.SplitConfig{Validation: t.Validation, MaxRows: t.MaxRows,
			Balance: t.Balance, Seed: r.Seed})
	}
	if err == nil {
		if err = (dataset.Rows{Used: used.Used}).OneClass("request " + r.ID); err != nil {
			err = fmt.Errorf("%w: %w", service.ErrHopeless, err)
		}
	}
	if err != nil {
		return service.Rows{}, errors.Join(err, s.Close())
	}
	l.Log.Info("rows", "job", r.ID, "train", len(train), "validation", len(valid), "from", r.Data.From, "to", r.Data.To,
		"feature_bytes", used.FeatureBytes, "streamed", used.Streamed)
	undo := func() {}
	if l.bound != nil {
		undo = l.bound(all)
	}
	return service.Rows{Train: dataset.Placed(all.Select(train)), Valid: dataset.Placed(all.Select(valid)),
		Current: current, Used: used,
		Close: func() { undo(); _ = s.Close() }}, nil // they were for reading
}

// fits refuses rows that are not of the shape that the head and the request have. file is that of the head where the
// configuration names it.
func fits(all *data.Set, s *dataset.Source, current *head.Head, file string) error {
	if current != nil && (current.D() != all.D || current.K() != all.K) {
		whose, where := service.ErrHopeless, "the head that serves"
		if file != "" {
			whose, where = service.ErrSetup, "trainer.heads: "+file
		}
		return fmt.Errorf("%w: rows of %d features and %d classes, %s takes %d and gives %d",
			whose, all.D, all.K, where, current.D(), current.K())
	}
	if s.K != 0 && s.K != all.K {
		return fmt.Errorf("%w: rows of %d classes by their column logits or probs, the request is of %d",
			service.ErrHopeless, s.K, all.K)
	}
	return nil
}

// all are the rows of a request, of which the newest, as many as may train and those that validate them.
func (l Loader) all(ctx context.Context, r record.Finetune, s *dataset.Source, used *Rows) (*data.Set, error) {
	from, to, err := dataRange(r)
	if err != nil {
		return nil, err
	}
	s.Span = &dataset.Span{From: from, To: to}
	if r.Classes < 0 || r.Classes == 1 || r.Classes > dataset.MostClasses {
		return nil, fmt.Errorf("%w: classes %d, allowed are 0 (by the rows) and 2..%d", service.ErrHopeless, r.Classes,
			dataset.MostClasses)
	}
	where, err := l.read(ctx, r, s, used)
	if err != nil {
		return nil, err
	}
	if s.Len() == 0 && l.archive() != "" {
		return nil, fmt.Errorf("%s: no archived rows of %s version %s: %s%s", where, r.Model, r.Version,
			emptyArchive(where), used.why())
	}
	if s.Len() == len(s.Outside) {
		return nil, fmt.Errorf("%s: no row of %s version %s was predicted between %s and %s and labelled by then; "+
			"%d are of other times%s", where, r.Model, r.Version, r.Data.From, r.Data.To, len(s.Outside), used.why())
	}
	most := 0
	if l.Config.Trainer.MaxRows > 0 {
		most = int(float64(l.Config.Trainer.MaxRows) / (1 - l.Config.Trainer.Validation))
	}
	set, err := s.NewestRows(where, r.Classes, most)
	if err != nil {
		return nil, err
	}
	used.Outside, used.Unlabelled = s.Used.Outside, s.Used.Unlabelled
	used.NoFeatures, used.Repeated = s.Used.NoFeatures, s.Used.Repeated
	used.Streamed, used.FeatureBytes = s.Used.Streamed, s.Used.FeatureBytes
	return set, nil
}

// read adds the rows of the archive or of the files that are in the span of s, and returns where they are.
func (l Loader) read(ctx context.Context, r record.Finetune, s *dataset.Source, used *Rows) (where string, err error) {
	if where = l.archive(); where == "" {
		where = fmt.Sprint(l.Config.Trainer.Files)
		used.Files, used.LeftOut, err = s.AddFiles(l.Config.Trainer.Files, r.Model, r.Version)
	} else {
		used.Archive = where
		var use dataset.ArchiveUse
		use, err = s.AddArchive(ctx, dataset.Archive{Dir: where, Model: r.Model, Version: r.Version,
			Until: s.Span.To + int64(l.Config.EventTime.AllowedLateness), Settle: l.Config.Trainer.Settle})
		used.ArchiveFiles, used.Settled, used.LeftOut = use.Files, use.Settled, use.LeftOut
	}
	used.leave(s.Used)
	for _, why := range used.LeftOut {
		l.Log.Warn("left out of the rows", "job", r.ID, "why", why)
	}
	if errors.Is(err, dataset.ErrOtherRows) {
		err = fmt.Errorf("%w: %w", service.ErrHopeless, err)
	}
	return where, err
}

// emptyArchive says what there is in place of rows.
func emptyArchive(dir string) string {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the directory is not there"
	case err != nil:
		return err.Error()
	case !st.IsDir():
		return "it is no directory"
	}
	return "the directory has no files of theirs that can be read"
}

// leave notes the files that were left out.
func (u *Rows) leave(r *dataset.Rows) {
	if r.Vanished > 0 {
		u.LeftOut = append(u.LeftOut, fmt.Sprintf("%d files were gone when they were opened", r.Vanished))
	}
	u.LeftOut = append(u.LeftOut, r.Unreadable...)
}

// why is the end of an error.
func (u *Rows) why() string {
	if len(u.LeftOut) == 0 {
		return ""
	}
	return "; left out: " + strings.Join(u.LeftOut, "; ")
}

// current is the head that serves a version, and its file: the configured one, or the result that it came from. nil:
// not known. A mistake of the configuration keeps the request.
func (l Loader) current(r record.Finetune) (*head.Head, string, error) {
	file := ""
	for _, h := range l.Config.Trainer.Heads {
		if h.Model == r.Model && h.Version == r.Version {
			file = h.File
			break
		}
	}
	own := filepath.Join(l.Config.Trainer.Dir, "jobs", service.JobDir(r.Model+"/"+r.Version), "result",
		service.FileHead)
	if file == "" && fileExists(own) {
		h, err := readServing(own)
		return h, "", err
	}
	for _, h := range l.Config.Trainer.Heads {
		if file == "" && h.Model == r.Model && h.Version == "" {
			file = h.File
		}
	}
	if file == "" {
		l.Log.Warn("the head that serves is not known: trainings begin with a fresh one (trainer.heads)", "model",
			r.Model, "version", r.Version)
		return nil, "", nil
	}
	h, err := readServing(file)
	if err != nil {
		err = fmt.Errorf("%w: trainer.heads: %w", service.ErrSetup, err)
	}
	return h, file, err
}

// readServing reads the file of a head that serves.
func readServing(file string) (*head.Head, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	h, _, err := artefact.ReadSafetensors(text)
	if err == nil {
		err = h.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return h, nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func dataRange(r record.Finetune) (from, to int64, err error) {
	if r.Data.From.IsZero() || r.Data.To.IsZero() {
		return 0, 0, fmt.Errorf("%w: data.from or data.to is no time", service.ErrHopeless)
	}
	return r.Data.From.UnixNano(), r.Data.To.UnixNano(), nil
}
