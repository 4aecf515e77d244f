package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/service"
)

func newHeadsShowCommand() *cobra.Command {
	return &cobra.Command{Use: "show ID", Short: "Tell all that is known of one head: request, training, verdict, orders, files", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			t, _, err := heads.Read(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			for _, h := range t.View().Heads {
				if h.ID != args[0] {
					continue
				}
				if jsonOutput(cmd) {
					return printJSON(cmd, h)
				}
				return printHead(cmd.OutOrStdout(), &h)
			}
			return fmt.Errorf("%s: there is no such head; plumbline heads list has all", args[0])
		}}
}

// printHead tells of a head in words.
func printHead(w io.Writer, h *heads.Head) error {
	serve := ""
	if h.Serve {
		serve = ", to be served"
	}
	fmt.Fprintf(w, "%s: %s%s\n", h.ID, h.State, serve)
	if h.Why != "" {
		fmt.Fprintln(w, h.Why)
	}
	if r := h.Request; r != nil {
		fmt.Fprintf(w, "asked for at %s (%s): %s, on rows of %s to %s, recipe %s, seed %d; runs as a shadow from %s\n", r.DecidedAt, r.Reason, r.Why, r.Data.From, r.Data.To, r.Recipe, r.Seed, r.ShadowFrom)
	}
	if j := h.Job; j != nil && h.Result == nil {
		fmt.Fprintf(w, "attempt %d on %s, %s: %.0f %% %s\n", j.Attempt, j.Trainer, j.State, 100*j.Done, j.Step)
	}
	if o := h.Order; o != nil {
		fmt.Fprintf(w, "%s by %s at %s: %s\n", o.Action, o.By, o.At, o.Why)
	}
	if err := printHeadResult(w, h); err != nil {
		return err
	}
	if v := h.Verdict; v != nil && v.Evidence.Rows > 0 {
		e := v.Evidence
		fmt.Fprintf(w, "on %d rows of the stream, %s to %s:\n", e.Rows, e.From, e.To)
		lines := [][]string{scoreColumns(), scoreLine("serving", e.Serving), scoreLine(h.ShadowVersion, e.Shadow)}
		if err := newTable(w).print(lines, 1); err != nil {
			return err
		}
		fmt.Fprintf(w, "log evidence: better %.1f, worse %.1f, accuracy not dropped %.1f; bound %.1f each\n", e.LogEBetter, e.LogEWorse, e.LogEAccuracy, -math.Log(e.Alpha))
	}
	return nil
}

// printHeadResult tells of what the trainer left.
func printHeadResult(w io.Writer, h *heads.Head) error {
	r := h.Result
	if r == nil {
		return nil
	}
	fmt.Fprintf(w, "%s by %s, attempt %d: %s\n", r.Outcome, r.Trainer, r.Attempt, r.Why)
	type scored struct {
		N int64 `json:"n"`
		record.ShadowScore
	}
	var ev struct{ Before, After *scored }
	if json.Unmarshal(r.Evidence, &ev) == nil && ev.After != nil && ev.After.N > 0 { // a program's evidence may be anything
		lines := [][]string{scoreColumns()}
		if ev.Before != nil {
			lines = append(lines, scoreLine("serving", ev.Before.ShadowScore))
		}
		lines = append(lines, scoreLine(h.ShadowVersion, ev.After.ShadowScore))
		fmt.Fprintf(w, "on %d validation rows:\n", ev.After.N)
		if err := newTable(w).print(lines, 1); err != nil {
			return err
		}
	}
	for _, a := range r.Artefacts {
		fmt.Fprintf(w, "%s: %s, %d bytes, SHA-256 %s\n", a.Name, a.Path, a.Bytes, a.SHA256)
	}
	return nil
}

func scoreColumns() []string { return []string{"", "accuracy", "nll", "ece", "if calibrated", "aurc"} }

func scoreLine(name string, s record.ShadowScore) []string {
	aurc := "-"
	if s.AURC != nil {
		aurc = formatShort(*s.AURC)
	}
	return []string{name, formatShort(s.Accuracy), formatNLL(s.NLL), formatShort(s.ECE), formatShort(s.ECENull), aurc}
}

// runHeadsExport writes a head's files: from its record, or from its artefacts where the record has only their hashes.
func runHeadsExport(cmd *cobra.Command, id, dir string) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	t, _, err := heads.Read(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	result := t.Result(id)
	if result == nil || result.Outcome != record.OutcomeTrained {
		return fmt.Errorf("%s: there is no such trained head", id)
	}
	h, err := service.Weights(*result)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: its weights are not in its record, and not where its trainer wrote them, which must be storage that this machine has: %w", id, err)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	meta := map[string]string{"plumbline.head": id, "plumbline.why": result.Why}
	var tensors strings.Builder
	if err := artefact.WriteSafetensors(&tensors, h, meta); err != nil {
		return err
	}
	const temperature = 1 // it is in the weights
	model, err := artefact.ONNX(h, temperature, meta)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, service.FileHead), []byte(tensors.String()), 0o644), os.WriteFile(filepath.Join(dir, service.FileONNX), model, 0o644))
}
