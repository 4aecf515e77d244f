package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/demo"
	"github.com/plumbline/plumbline/internal/printable"
)

func newDemoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use: "demo",
		Short: "Show the whole loop in one minute: a shift, the alarm, the refit, a new head, " +
			"with a broker and a model of its own",
		Long: help("demo"),
		Args: cli.Args(cobra.NoArgs),
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.Length, "for", time.Minute, "`length` of the run, 20s to 1h")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of model, order and changes of the images")
	flags.BoolVar(&o.Headless, "headless", false, "serve no page")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "`address` of the page; if it is taken, a free port")
	flags.StringVar(&o.Dir, "dir", "",
		"empty `directory` for broker, checkpoints and log; it is kept (default: a temporary one)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("config") {
			return cli.Usagef("--config: the demo has a configuration of its own")
		}
		if o.Length < demo.ForMin || o.Length > demo.ForMax {
			return cli.Usagef("--for %v: must be %v to %v", o.Length, demo.ForMin, demo.ForMax)
		}
		if _, _, err := net.SplitHostPort(o.Listen); err != nil {
			return cli.Usagef("--listen %q: must be host:port, such as 127.0.0.1:8080", o.Listen)
		}
		o.Length = o.Length.Truncate(time.Second)
		o.Linger = !o.Headless && !cmd.Flags().Changed("for") && terminal(printable.Raw(cmd.OutOrStdout()))
		return runDemo(cmd, o)
	}
	return cmd
}

func runDemo(cmd *cobra.Command, o demo.Options) error {
	w := printable.Raw(cmd.OutOrStdout()) // it draws, of names that are its own
	if jsonOutput(cmd) {
		w = printable.Raw(cmd.ErrOrStderr())
	}
	lines := &demo.Lines{W: w, Colour: terminal(w) && os.Getenv("NO_COLOR") == "", Width: columns(w)}
	// A terminal that is closed ends the demo too, which then removes what it has written.
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
	defer stop()
	result, err := demo.Run(ctx, o, lines, func(r demo.Result) error {
		if !jsonOutput(cmd) {
			return nil
		}
		return printJSON(cmd, r)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &demo.UsageError{}):
		return cli.UsageError{Err: err}
	case err != nil:
		return err
	case !result.LoopClosed:
		return fmt.Errorf("the loop did not close: %s", strings.Join(result.Reasons, "; "))
	}
	return nil
}

func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns is the width of a terminal; 0 for anything else.
func columns(w any) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}
