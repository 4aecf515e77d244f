package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/internal/progress"
)

// applyFlags are the flags of `plumbline apply`.
type applyFlags struct {
	inputFlags
	out           string
	force, double bool
}

// applyResult is the object of `plumbline apply --json`.
type applyResult struct {
	File       string `json:"file"`
	Method     string `json:"method"`
	Calibrator string `json:"calibrator"`
	Rows       int    `json:"rows"`
	Classes    int    `json:"classes"`
	Output     string `json:"output"`
}

func newApplyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:     "apply CALIBRATOR FILE[:array] -o OUT",
		Short:   "Calibrated probabilities of a file",
		Long:    help("apply", strings.Join(table.Extensions(), ", ")),
		Example: "  plumbline apply cal.json monday.parquet -o calibrated.parquet",
		Args:    cli.Args(cobra.ExactArgs(2)),
		RunE:    func(cmd *cobra.Command, args []string) error { return runApply(cmd, args[0], args[1], f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "`file` to write; - is CSV on stdout")
	flags.BoolVar(&f.force, "force", false, "replace existing files")
	flags.BoolVar(&f.double, "float64", false, "write probabilities as float64")
	return cmd
}

func (f applyFlags) check(cmd *cobra.Command) error {
	ext := filepath.Ext(f.out)
	switch {
	case f.out == "":
		return cli.Usagef("-o: a file is needed, or - for CSV on stdout")
	case f.out == "-" && jsonOutput(cmd):
		return cli.Usagef("--json: not with -o -, which writes the rows to stdout")
	case f.out != "-" && !slices.Contains(table.Extensions(), ext):
		return cli.Usagef("-o %s: extension %q, allowed are %s, or - for CSV on stdout", f.out, ext,
			strings.Join(table.Extensions(), ", "))
	}
	return nil
}

func runApply(cmd *cobra.Command, calFile, file string, f applyFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if err := offline.CheckFree("-o", f.out, f.force || f.out == "-"); err != nil {
		return err
	}
	cal, err := offline.ReadCalibrator(calFile)
	if err != nil {
		return err
	}
	t, err := feed.OpenTable(file, f.table())
	if err != nil {
		return err
	}
	if err := offline.CheckClasses(calFile, cal, file, t.K); err != nil {
		return err
	}
	offline.NoteCalibrated(f.of, calFile, cal, file, t)
	bar := progress.New(cmd.ErrOrStderr(), int64(t.N), "apply", "rows")
	err = offline.CalibrateTable(cal, t, f.double, func(rows int) { bar.Add(int64(rows)) })
	bar.Finish()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	offline.NoteLeft(f.of, file, t)
	if f.out == "-" {
		w := cmd.OutOrStdout()
		if raw := printable.Raw(w); !terminal(raw) { // a program reads it: every value as it is
			w = raw
		}
		return table.WriteCSV(w, t)
	}
	err = offline.ReplaceFile(f.out, f.force, func(temporary string) error { return table.Write(temporary, t) })
	if err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, applyResult{file, cal.Method(), cal.Describe(), t.N, t.K, f.out})
	}
	printf(cmd, "%s: %d rows of %d classes, %s\n", f.out, t.N, t.K, cal.Describe())
	return nil
}
