package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/config"
)

// initFlags are the answers to the questions of config init.
type initFlags struct {
	brokers, user, passwordFile, labels, dir, alerts string
	output                                           string
	force                                            bool
}

func newConfigInitCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a small configuration file: asks five questions, or takes the answers from flags",
		Example: "  plumbline config init\n" +
			"  plumbline config init --brokers kafka-1:9092,kafka-2:9092 --labels inline -o plumbline.yaml",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runConfigInit(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.brokers, "brokers", "127.0.0.1:9092", "`addresses` of Kafka, host:port with commas between")
	flags.StringVar(&f.user, "user", "", "user `name` of Kafka, by SASL over TLS; none: neither is used")
	flags.StringVar(&f.passwordFile, "password-file", "/run/secrets/kafka-password",
		"`file` with the password of --user")
	flags.StringVar(&f.labels, "labels", "topic", "`how` labels come: topic, of their own, or inline with predictions")
	flags.StringVar(&f.dir, "dir", "state", "`directory` of the state")
	flags.StringVar(&f.alerts, "alerts", "", "`address` of an Alertmanager, http://host:9093; none: nobody is told")
	flags.StringVarP(&f.output, "output", "o", "plumbline.yaml", "`file` to write; - is stdout")
	flags.BoolVar(&f.force, "force", false, "replace existing files")
	return cmd
}

// questions are asked in this order, each for the flag that answers it.
var questions = []struct{ flag, text string }{
	{"brokers", "Kafka's addresses, host:port with commas between"},
	{"user", "Kafka user, where it wants TLS and a password"},
	{"labels", "labels: in a topic of their own, or inline with the predictions"},
	{"dir", "directory of the state, which must outlive the process"},
	{"alerts", "Alertmanager that is told of alerts, such as http://127.0.0.1:9093"},
}

func runConfigInit(cmd *cobra.Command, f *initFlags) error {
	if err := askMissing(cmd, f); err != nil {
		return err
	}
	text, err := f.text()
	if err != nil {
		return err
	}
	if f.output == "-" {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	const readable = 0o644
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	out, err := os.OpenFile(f.output, how, readable)
	if errors.Is(err, os.ErrExist) {
		return cli.Usagef("%s: is there already; --force replaces it", f.output)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, map[string]string{"file": f.output})
	}
	printf(cmd, "wrote %[1]s; next: plumbline topics create -c %[1]s\n", f.output)
	return nil
}

// text is the configuration of the answers.
func (f *initFlags) text() ([]byte, error) {
	if f.labels != "topic" && f.labels != "inline" {
		return nil, cli.Usagef("--labels %q: must be topic or inline", f.labels)
	}
	brokers := strings.FieldsFunc(f.brokers, func(r rune) bool { return r == ',' || r == ' ' })
	text := config.Minimal(config.Answers{Brokers: brokers, User: f.user, PasswordFile: f.passwordFile,
		InlineLabels: f.labels == "inline", Dir: f.dir, Alerts: f.alerts})
	if _, err := config.Parse(text, "answers"); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	return text, nil
}

// askMissing asks for what no flag says, where a person can answer and no flag was given. A question whose answer is
// refused is asked again.
func askMissing(cmd *cobra.Command, f *initFlags) error {
	in := cmd.InOrStdin()
	file, isFile := in.(*os.File)
	given := slices.ContainsFunc(questions, func(q struct{ flag, text string }) bool {
		return cmd.Flags().Changed(q.flag)
	})
	if given || isFile && !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	lines := bufio.NewScanner(in)
	for i := 0; i < len(questions); {
		flag := cmd.Flags().Lookup(questions[i].flag)
		fmt.Fprintf(cmd.ErrOrStderr(), "%s [%s]: ", questions[i].text, cmp.Or(flag.DefValue, "none"))
		if !lines.Scan() {
			return errors.Join(lines.Err(), io.ErrUnexpectedEOF)
		}
		i++
		answer := strings.TrimSpace(lines.Text())
		if answer == "" || answer == "none" {
			continue
		}
		err := flag.Value.Set(answer)
		if err == nil {
			_, err = f.text()
		}
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), err)
			i--
			_ = flag.Value.Set(flag.DefValue)
		}
	}
	return nil
}
