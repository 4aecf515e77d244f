package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/onnx"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/offline"
)

// convertResult is the object of `plumbline convert --json`.
type convertResult struct {
	File       string `json:"file"`
	Method     string `json:"method"`
	Calibrator string `json:"calibrator"`
	Classes    int    `json:"classes,omitempty"` // absent: any
	Output     string `json:"output"`
	Bytes      int    `json:"bytes"`
}

func newConvertCommand() *cobra.Command {
	var (
		out   string
		force bool
	)
	cmd := &cobra.Command{
		Use:   "convert CALIBRATOR -o OUT.onnx",
		Short: "A calibrator as an ONNX model",
		Long:  help("convert", onnx.InputName, onnx.OutputName),
		Example: "  plumbline convert cal.json -o cal.onnx\n" +
			"  curl -s http://host:8080/api/v1/models/digits/calibrator > now.json && " +
			"plumbline convert now.json -o now.onnx",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runConvert(cmd, args[0], out, force) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&out, "output", "o", "", "`file` to write, with the extension .onnx")
	flags.BoolVar(&force, "force", false, "replace existing files")
	return cmd
}

func runConvert(cmd *cobra.Command, file, out string, force bool) error {
	if ext := filepath.Ext(out); ext != ".onnx" {
		return cli.Usagef("-o: %q, allowed is a file with the extension .onnx", out)
	}
	c, err := offline.ReadCalibrator(file)
	if err != nil {
		return err
	}
	model, err := onnx.Calibrator(c)
	if err != nil {
		return fmt.Errorf("convert %s: %w", file, err)
	}
	err = offline.ReplaceFile(out, force, func(temporary string) error { return os.WriteFile(temporary, model, 0o600) })
	if err != nil {
		return err
	}
	result := convertResult{File: file, Method: c.Method(), Calibrator: c.Describe(), Output: out, Bytes: len(model),
		Classes: calibrator.ClassesOf(c)}
	if jsonOutput(cmd) {
		return printJSON(cmd, result)
	}
	printf(cmd, "%s: %s, %d bytes\n", out, result.Calibrator, result.Bytes)
	return nil
}
