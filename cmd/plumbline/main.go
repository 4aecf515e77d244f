package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/printable"
)

// Exit codes; help/plumbline.txt and docs/cli.md say them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := untilSignal()
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// untilSignal is done when the process is told to end. A terminal that goes away does so too, unless it was started to
// outlive it (nohup).
func untilSignal() (context.Context, context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	out, errs := printable.NewWriter(stdout), printable.NewWriter(stderr)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if err.Error() != "" {
		fmt.Fprintf(errs, "plumbline: %s\n", strings.TrimPrefix(err.Error(), "plumbline: "))
	}
	var usage cli.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(errs, "usage: %s\n%s --help tells more\n", cmd.UseLine(), cmd.CommandPath())
	}
	return code
}

// exitCode is 2 for wrong usage and invalid configurations, else 1.
func exitCode(err error) int {
	var usage cli.UsageError
	var problems config.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &problems):
		return exitUsage
	}
	return exitFailed
}
