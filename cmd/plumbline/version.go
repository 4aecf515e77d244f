package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/buildinfo"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := buildinfo.Read()
			if jsonOutput(cmd) {
				return printJSON(cmd, v)
			}
			printf(cmd, "plumbline %s", v.Version)
			if v.Revision != "" {
				printf(cmd, " (%.12s, %s)", v.Revision, v.Time)
			}
			if v.Modified {
				printf(cmd, " modified")
			}
			printf(cmd, " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
}
