package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
)

func newHealthCommand() *cobra.Command {
	var f processFlags
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a process whether it is ready; exit code 1 if not. For images and load balancers",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			urls, err := f.bases(cmd)
			if err != nil {
				return err
			}
			client, err := f.client()
			if err != nil {
				return err
			}
			path := "ready"
			if live {
				path = control.Healthy
			}
			for _, u := range urls {
				if err := client.Check(cmd.Context(), u, path); err != nil {
					return err
				}
			}
			if jsonOutput(cmd) {
				return printJSON(cmd, map[string]any{"processes": urls, path: true})
			}
			printf(cmd, "%s\n", path)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether it answers")
	return cmd
}
