package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/gorgonia"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// task is a training of a number of epochs, of rows and initial weights in a folder: x.npy, y.npy, w0.npy, b0.npy, ….
type task struct {
	Folder  string  `json:"folder"`
	Backend string  `json:"backend"` // go or gorgonia
	BLAS    string  `json:"blas"`    // openblas or gonum
	Threads int     `json:"threads"`
	Loss    string  `json:"loss"`
	Batch   int     `json:"batch"`
	Epochs  int     `json:"epochs"`
	Keep    float64 `json:"keep"` // share of kept weights; 0 is no masks
	// Shuffle passes over the rows in a new order every epoch; else in their own.
	Shuffle  bool    `json:"shuffle"`
	LR       float32 `json:"lr"`
	Momentum float32 `json:"momentum"`
	Decay    float32 `json:"decay"`
}

// answer has the seconds and the mean loss of every epoch.
type answer struct {
	Seconds []float64 `json:"seconds"`
	Loss    []float64 `json:"loss"`
	Error   string    `json:"error,omitempty"`
}

func main() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var t task
		var a answer
		err := json.Unmarshal(in.Bytes(), &t)
		if err == nil {
			a, err = t.run()
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func (t task) run() (answer, error) {
	p, err := t.problem()
	if err != nil {
		return answer{}, err
	}
	b, err := t.open()
	if err != nil {
		return answer{}, err
	}
	s, err := b.Open(p)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = s.Close() }()
	e := backend.EpochPlan{Rows: data.Rows(p.Train.N()), Batch: t.Batch, LR: t.LR, Momentum: t.Momentum,
		WeightDecay: t.Decay}
	var a answer
	for i := range t.Epochs {
		start := time.Now()
		if t.Shuffle {
			data.Shuffled(e.Rows, 1, i)
		}
		if t.Keep > 0 {
			e.Mask = &backend.Mask{Keep: t.Keep, Seed: 1, Restrict: true,
				FirstStep: uint32(i * data.Batches(len(e.Rows), t.Batch))}
		}
		r, err := s.Epoch(e)
		if err != nil {
			return answer{}, err
		}
		a.Seconds, a.Loss = append(a.Seconds, time.Since(start).Seconds()), append(a.Loss, r.Loss)
	}
	return a, nil
}

func (t task) open() (backend.Backend, error) {
	var gemm head.GEMM = head.Gonum{}
	if t.BLAS == "openblas" {
		if _, err := blas.Load(); err != nil {
			return nil, err
		}
		gemm = blas.Best(slog.New(slog.NewTextHandler(io.Discard, nil)), t.Threads)
	}
	switch t.Backend {
	case "go":
		return backend.Go{GEMM: gemm}, nil
	case "gorgonia":
		return gorgonia.Backend{GEMM: gemm}, nil
	}
	return nil, fmt.Errorf("backend %q, allowed go, gorgonia", t.Backend)
}

func (t task) problem() (backend.Problem, error) {
	read := func(name string) (npy.Numbers, error) { return npy.ReadFile(filepath.Join(t.Folder, name+".npy")) }
	x, err := read("x")
	if err != nil {
		return backend.Problem{}, err
	}
	y, err := read("y")
	if err != nil {
		return backend.Problem{}, err
	}
	h := &head.Head{}
	for i := 0; ; i++ {
		w, err := read(fmt.Sprintf("w%d", i))
		if os.IsNotExist(err) && i > 0 {
			break
		}
		if err != nil {
			return backend.Problem{}, err
		}
		b, err := read(fmt.Sprintf("b%d", i))
		if err != nil {
			return backend.Problem{}, err
		}
		h.Layers = append(h.Layers, head.Layer{In: w.Columns(), Out: w.Shape[0], W: w.F32, B: b.F32})
	}
	set := &data.Set{D: x.Columns(), K: h.K(), X: x.F32, Y: y.Int}
	return backend.Problem{Train: set, Head: h, Losses: []string{t.Loss}, Batch: t.Batch}, nil
}
