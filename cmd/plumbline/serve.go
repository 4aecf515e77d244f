package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/standalone"
)

func newServeCommand() *cobra.Command {
	var o standalone.Options
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run everything in one process without Kafka: rows over HTTP in, page and alerts out",
		Long:    help("serve"),
		Example: "  plumbline serve --embedded /var/lib/plumbline",
		Args:    cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVar(&o.Dir, "embedded", "", "`directory` of configuration, records and state; made if it is new")
	cmd.Flags().StringVar(&o.Listen, "listen", "", "`address` of page and API (default: as the configuration says)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Dir == "" {
			return cli.Usagef("--embedded: must be a directory; on Kafka it is plumbline run -c FILE")
		}
		if strings.HasPrefix(o.Dir, "-") { // a flag, where a directory was forgotten
			return cli.Usagef("--embedded %q: must be a directory, written as ./%s if that is its name", o.Dir, o.Dir)
		}
		if cmd.Flags().Changed("config") {
			return cli.Usagef("--config: the configuration is %s in the directory of --embedded",
				standalone.ConfigFile)
		}
		var err error
		if o.Log, err = newLogger(cmd); err != nil {
			return err
		}
		o.Tell = func(format string, args ...any) { printf(cmd, format, args...) }
		return standaloneError(standalone.Serve(cmd.Context(), o))
	}
	return cmd
}

func standaloneError(err error) error {
	if errors.Is(err, standalone.ErrUsage) {
		return cli.UsageError{Err: err}
	}
	return err
}
