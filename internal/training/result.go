package training

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/diagram"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/plot"
	"github.com/plumbline/plumbline/internal/texttable"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// Result is the object of `plumbline train --json`, and report.json.
type Result struct {
	File    string       `json:"file"`
	D       int          `json:"d"`
	K       int          `json:"k"`
	Rows    dataset.Rows `json:"rows"`
	Recipe  string       `json:"recipe"`
	Backend string       `json:"backend"`
	BLAS    string       `json:"blas"`
	Seconds float64      `json:"train_seconds"`
	// Training is the report of one recipe, Auto that of several.
	Training *recipe.Report     `json:"training,omitempty"`
	Auto     *recipe.AutoReport `json:"auto,omitempty"`
	// Changed is false where the head is the current one: nothing was shown to be better.
	Changed bool `json:"changed"`
	// Temperature is the best one on the validation rows, 1 where it was refused, and Refused says why; Tempered says
	// that the new head's logits are divided by it.
	Temperature float64             `json:"temperature"`
	Refused     string              `json:"temperature_refused,omitempty"`
	Tempered    bool                `json:"tempered"`
	Validation  offline.HeadScores  `json:"validation"`
	Holdout     *offline.HeadScores `json:"holdout,omitempty"`
	// Unknown compares the held-out rows, or else the validation rows, with those of --ood.
	Unknown *offline.Unknown `json:"unknown,omitempty"`
	Output  string           `json:"output,omitempty"`

	trained *head.Head
}

// heads are the current head, nil where there is none, and the new one.
type heads struct{ current, trained *head.Head }

// score measures both heads on the validation and held-out rows. The logits of one set at a time are in memory.
func (r *Result) score(o *Options, d *dataset.Data, gemm head.GEMM, h heads) error {
	r.Rows, r.trained = d.Rows, h.trained
	if r.Auto == nil {
		var err error
		in := recipe.Input{Train: d.Train, Valid: d.Valid, Mixed: o.Data.Mixed()}
		if r.Temperature, r.Refused, err = recipe.Temperature(h.trained, in); err != nil {
			return fmt.Errorf("temperature of the validation rows: %w", err)
		}
		if o.Temper && r.Refused == "" {
			r.trained, r.Tempered, r.Changed = h.trained.Tempered(r.Temperature), true, true
		}
	}
	opt := metric.Options{Bins: o.MetricBins, Seed: o.Data.Seed}
	var err error
	if r.Validation, err = offline.ScoreHeads(h.current, r.trained, d.Valid, gemm, opt); err != nil {
		return err
	}
	if d.Unknown != nil {
		known := d.Valid
		if d.Hold != nil {
			known = d.Hold
		}
		r.Unknown = offline.ScoreUnknown(h.current, r.trained, known, d.Unknown, gemm)
	}
	if d.Hold == nil {
		return nil
	}
	held, err := offline.ScoreHeads(h.current, r.trained, d.Hold, gemm, opt)
	r.Holdout = &held
	return err
}

// scaled says whether the features were too far from 1.
func (r *Result) scaled() bool {
	if r.Auto == nil {
		return r.Training.Scaled
	}
	return slices.ContainsFunc(r.Auto.Tried, func(s recipe.AutoScore) bool {
		return s.Report != nil && s.Report.Scaled
	})
}

// outputs are what -o gets; the report comes last, so that it says that the others are whole.
var outputs = []string{"head.safetensors", "head.onnx", "curves.png", "report.json"}

// write puts the head, its curves and the report into the directory of -o.
func (r *Result) write(o *Options) error {
	if err := os.MkdirAll(o.Output, 0o755); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	meta := map[string]string{"plumbline.recipe": r.Recipe, "plumbline.backend": r.Backend,
		"plumbline.nll": strconv.FormatFloat(r.Validation.After.NLL, 'g', 6, 64)}
	for i, write := range []func(io.Writer) error{
		func(w io.Writer) error { return artefact.WriteSafetensors(w, r.trained, meta) },
		func(w io.Writer) error { return r.onnx(w, meta) },
		r.curves,
		r.report,
	} {
		file := filepath.Join(o.Output, outputs[i])
		err := offline.ReplaceFile(file, o.Force, func(temporary string) error {
			return writeThrough(temporary, write)
		})
		if err != nil {
			return fmt.Errorf("-o %s: %w", file, err)
		}
	}
	return nil
}

func (r *Result) onnx(w io.Writer, meta map[string]string) error {
	const temperature = 1 // that of the report is in the weights, or left to whoever serves
	b, err := artefact.ONNX(r.trained, temperature, meta)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

func (r *Result) report(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func writeThrough(file string, write func(io.Writer) error) (err error) {
	w, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	return write(w)
}

// Print writes the result as text.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d features, %d classes; %s\n", r.File, r.D, r.K, r.Rows)
	scaled := ""
	if r.scaled() {
		scaled = ", features scaled while it trained"
	}
	fmt.Fprintf(w, "%s on %s (%s), %s%s\n", r.Recipe, r.Backend, r.BLAS, texttable.Seconds(r.Seconds), scaled)
	if err := r.printTraining(w); err != nil {
		return err
	}
	r.printTemperature(w)
	lines := [][]string{{"", "before", "after", "difference"}}
	lines = append(lines, r.Validation.Lines("validation")...)
	if r.Holdout != nil {
		lines = append(lines, r.Holdout.Lines("held out")...)
	}
	if r.Unknown != nil {
		lines = append(lines, r.Unknown.Lines()...)
	}
	if err := texttable.Print(w, lines, 1); err != nil {
		return err
	}
	if d := r.Validation.Difference; r.Auto == nil && d != nil && d.Lo > 0 {
		fmt.Fprintln(w, "warning: the new head is worse than the current one on the validation rows")
	}
	if !r.Changed {
		fmt.Fprintln(w, "unchanged: nothing was shown to be better than the current head")
	}
	if r.Output != "" {
		fmt.Fprintln(w, "written to", r.Output)
	}
	return nil
}

func (r *Result) printTemperature(w io.Writer) {
	switch {
	case r.Refused != "":
		fmt.Fprintf(w, "temperature of the validation rows: refused, %s\n", r.Refused)
	case r.Tempered:
		fmt.Fprintf(w, "temperature of the validation rows: %.4g, in the weights\n", r.Temperature)
	case r.Auto == nil:
		fmt.Fprintf(w, "temperature of the validation rows: %.4g, not applied; --temper does\n", r.Temperature)
	}
}

func (r *Result) printTraining(w io.Writer) error {
	if r.Auto == nil {
		t := r.Training
		stopped := ""
		if t.Stopped {
			stopped = ", stopped early"
		}
		_, err := fmt.Fprintf(w, "%d epochs%s; the head is that of epoch %d\n", len(t.Epochs), stopped, t.Best)
		return err
	}
	lines := [][]string{{"", "nll", "temperature", "accuracy", "- current", "2 standard errors"}}
	if c := r.Auto.Current; c != nil {
		lines = append(lines, []string{c.Name, texttable.NLL(c.NLL), "", texttable.Short(c.Accuracy)})
	}
	for _, s := range r.Auto.Tried {
		if s.Error != "" {
			lines = append(lines, []string{s.Name, "failed"})
			continue
		}
		line := []string{s.Name, texttable.NLL(s.NLL), texttable.Short(s.Temperature), texttable.Short(s.Accuracy)}
		if d := s.OverCurrent; d != nil {
			line = append(line, fmt.Sprintf("%+.5f", d.Mean), fmt.Sprintf("%.5f", 2*d.SE))
		}
		lines = append(lines, line)
	}
	if err := texttable.Print(w, lines, 1); err != nil {
		return err
	}
	for _, s := range r.Auto.Tried {
		if s.Error != "" {
			fmt.Fprintf(w, "%s failed: %s\n", s.Name, s.Error)
		}
		if s.Spell && s.OverCurrent.Mean < 0 {
			fmt.Fprintf(w, "%s is not taken: on training rows the current head is better\n", s.Name)
		}
	}
	_, err := fmt.Fprintln(w, "chosen:", r.Auto.Chosen)
	return err
}

// curves draws a row of panels for each training as PNG.
func (r *Result) curves(w io.Writer) error {
	var page [][]*plot.Panel
	if r.Training != nil {
		page = append(page, diagram.Training(r.Recipe, r.Training))
	}
	if r.Auto != nil {
		for _, s := range r.Auto.Tried {
			if s.Report != nil {
				page = append(page, diagram.Training(s.Name, s.Report))
			}
		}
	}
	return plot.Write(w, ".png", page)
}
