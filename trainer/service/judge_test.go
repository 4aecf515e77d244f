package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// TestCommandIsJudged: the head of a program is announced as trained only where the validation rows show that it is
// better than the head that serves, or than the shares of the classes. One that says the same of every row is refused.
func TestCommandIsJudged(t *testing.T) {
	rows := &data.Set{D: 1, K: 2}
	for i := range 200 {
		rows.X, rows.Y = append(rows.X, float32(2*(i%2)-1)), append(rows.Y, int32(i%2))
	}
	linear := func(w, b float32) *head.Head {
		h, err := head.Linear([]float32{-w, w}, []float32{-b, b})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	always := &head.Head{Layers: []head.Layer{{In: 1, Out: 2, W: []float32{3, 3}, B: []float32{9, 0}}}}
	for name, c := range map[string]struct {
		h, current *head.Head
		outcome    string
		err        string
	}{
		"zero":                {h: linear(0, 0), err: "every row gets the same probabilities"},
		"one class":           {h: always, err: "same"},
		"no better than none": {h: linear(-1, 0), outcome: record.OutcomeUnchanged},
		"better than none":    {h: linear(1, 0), outcome: record.OutcomeTrained},
		"worse":               {h: linear(1, 0), current: linear(2, 0), outcome: record.OutcomeUnchanged},
		"the same":            {h: linear(2, 0), current: linear(2, 0), outcome: record.OutcomeUnchanged},
		"better":              {h: linear(2, 0), current: linear(1, 0), outcome: record.OutcomeTrained},
	} {
		t.Run(name, func(t *testing.T) {
			task := newTask(t)
			given := filepath.Join(t.TempDir(), "given")
			if err := writeHead(given, c.h); err != nil {
				t.Fatal(err)
			}
			script := `job="$1"; ` + resultOf("$job") + `cp ` + given + ` "$result/head.safetensors"; ` +
				`echo '{"outcome": "trained", "why": "mine"}' > "$result/report.json"`
			run := &Command{Args: []string{"/bin/sh", "-c", script, "program"}, Grace: time.Second,
				Log: slog.New(slog.DiscardHandler),
				Load: func(context.Context, record.Finetune) (Rows, error) {
					return Rows{Train: rows, Valid: rows, Current: c.current}, nil
				}}
			err := run.Run(t.Context(), task)
			if c.err != "" {
				if !errors.Is(err, ErrResult) || !strings.Contains(fmt.Sprint(err), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			res, err := ReadResult(task.Result, task.Request)
			if err != nil || res.Outcome != c.outcome || !strings.Contains(res.Why, "mine; validation NLL") {
				t.Errorf("got %+v, %v, want %s", res, err, c.outcome)
			}
			if c.outcome == record.OutcomeTrained && !exists(filepath.Join(task.Result, FileONNX)) {
				t.Error("no head.onnx")
			}
		})
	}
}
