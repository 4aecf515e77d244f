package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/backup"
	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
	"github.com/plumbline/plumbline/sinks/registry"
)

func newBackupCommand() *cobra.Command {
	var output string
	var force bool
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Copy state and history into one file, while all processes are stopped or paused",
		Long:    help("backup"),
		Example: "  plumbline backup -c plumbline.yaml -o /backup/plumbline.tar.gz",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runBackup(cmd, output, force) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write, .tar.gz")
	cmd.Flags().BoolVar(&force, "force", false, "replace existing files")
	return cmd
}

func newRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in place of a state that is lost; all processes stopped, the directory empty",
		Long:  help("backup"),
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, place, err := backupPlace(cmd)
			if err != nil {
				return err
			}
			log, err := newLogger(cmd)
			if err != nil {
				return err
			}
			e := engine.New(cfg, log)
			m, err := backup.Restore(args[0], place, func(stage string, data []byte) error {
				err := e.Readable(stage, data)
				format := (*pipeline.FormatError)(nil)
				if errors.Is(err, pipeline.ErrCheckpoint) && !errors.As(err, &format) {
					return nil // damaged before it was copied: the task uses another
				}
				return err
			})
			if err != nil {
				return err
			}
			store := &dirstore.Store{Dir: cfg.Checkpoints.Dir, Keep: cfg.Checkpoints.Keep}
			if err := reset.Branch(cmd.Context(), store, cfg.Group); err != nil {
				return fmt.Errorf("%s: %w", place.State, err)
			}
			return printBackup(cmd, "restored to "+place.State, m)
		},
	}
}

// backupPlace is where the configuration has state and history.
func backupPlace(cmd *cobra.Command) (config.Config, backup.Place, error) {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return cfg, backup.Place{}, err
	}
	if cfg.Checkpoints.Store != "directory" {
		return cfg, backup.Place{}, cli.Usagef("checkpoints.store %s: the state is in Kafka; back %s up there",
			cfg.Checkpoints.Store, cfg.Topics.Checkpoints)
	}
	place := engine.BackupPlace(cfg)
	if cfg.History.Store != registry.File {
		place.History = ""
	}
	return cfg, place, nil
}

func runBackup(cmd *cobra.Command, output string, force bool) error {
	if output == "" {
		return cli.Usagef("--output: must be a file such as plumbline.tar.gz")
	}
	cfg, place, err := backupPlace(cmd)
	if err != nil {
		return err
	}
	if err := deployment.HasStateDir(&cfg); err != nil {
		return err
	}
	if _, err := os.Stat(output); err == nil && !force {
		return cli.Usagef("%s: is there already; --force replaces it", output)
	}
	var m *backup.Manifest
	err = durable.Write(output, ".plumbline-backup-*", func(to *os.File) (err error) {
		m, err = backup.Create(to, place, "plumbline "+buildinfo.Name())
		return err
	})
	if err != nil {
		return err
	}
	return printBackup(cmd, output, m)
}

func printBackup(cmd *cobra.Command, what string, m *backup.Manifest) error {
	if jsonOutput(cmd) {
		return printJSON(cmd, m)
	}
	bytes := int64(0)
	for _, f := range m.Files {
		bytes += f.Size
	}
	printf(cmd, "%s: %s\n", what, fmt.Sprintf("%d files, %d bytes, of %s, by %s", len(m.Files), bytes,
		m.At.Format("2006-01-02 15:04:05Z"), m.Program))
	return nil
}
