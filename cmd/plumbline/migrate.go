package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/standalone"
)

func newMigrateCommand() *cobra.Command {
	var m standalone.Move
	var to string
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Move what plumbline serve --embedded holds to a Kafka; the process stopped",
		Long:    help("migrate"),
		Example: "  plumbline migrate --embedded /var/lib/plumbline --to kafka://broker:9092",
		Args:    cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVar(&m.Dir, "embedded", "", "`directory` that plumbline serve had")
	cmd.Flags().StringVar(&to, "to", "", "kafka://`HOST:PORT`[,HOST:PORT…]; with TLS or users, -c FILE instead")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		brokers, isKafka := strings.CutPrefix(to, "kafka://")
		byFile := cmd.Flags().Changed("config")
		switch {
		case m.Dir == "":
			return cli.Usagef("--embedded: must be the directory that plumbline serve had")
		case byFile == (to != ""):
			return cli.Usagef("either --to kafka://HOST:PORT or -c FILE must say where the brokers are")
		case to != "" && (!isKafka || brokers == ""):
			return cli.Usagef("--to %q: must be kafka://HOST:PORT, with commas between several", to)
		}
		m.Brokers = strings.Split(brokers, ",")
		if byFile {
			cfg, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			m.Target = &cfg
		}
		var err error
		if m.Log, err = newLogger(cmd); err != nil {
			return err
		}
		m.Tell = func(format string, args ...any) { printf(cmd, format, args...) }
		if err := standalone.Migrate(cmd.Context(), m); err != nil {
			return standaloneError(err)
		}
		file, _ := cmd.Flags().GetString("config")
		if file == "" {
			file = strings.TrimSuffix(m.Dir, "/") + "/" + standalone.ConfigFile
		}
		printf(cmd, "done: plumbline run -c %s goes on with all counts\n", file)
		return nil
	}
	return cmd
}
