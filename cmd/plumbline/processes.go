package main

import (
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
)

// processFlags say which running processes a command asks, and how to be let in.
type processFlags struct {
	urls                   []string
	user, passwordFile, ca string
	wait                   time.Duration
}

func (f *processFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.urls, "url", nil,
		"`address` of a process, such as http://host:8080; may be repeated (default: http.listen)")
	cmd.Flags().StringVar(&f.user, "user", "", "user `name` of http.web_config_file")
	cmd.Flags().StringVar(&f.passwordFile, "password-file", "", "`file` with the password")
	cmd.Flags().StringVar(&f.ca, "ca-file", "", "PEM `file` of the authorities to trust")
}

// bases are the addresses of the processes to ask: those of --url, else that of the configuration.
func (f *processFlags) bases(cmd *cobra.Command) ([]string, error) {
	if f.wait < 0 {
		return nil, cli.Usagef("--wait %s: must be 0 or more", f.wait)
	}
	if len(f.urls) == 0 {
		cfg, err := loadConfig(cmd)
		if err != nil {
			return nil, err
		}
		if cfg.HTTP.Listen == "" {
			return nil, cli.Usagef("--url: must name a process such as http://host:8080, for http.listen is empty")
		}
		return []string{"http://" + cfg.HTTP.Listen}, nil
	}
	bases := make([]string, len(f.urls))
	for i, text := range f.urls {
		u, err := url.Parse(text)
		if at := strings.LastIndex(text, "@"); at >= 0 { // outputs and errors name the address
			return nil, cli.Usagef("--url %q: must have no user in it: set --user and --password-file", text[at+1:])
		}
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, cli.Usagef("--url %q: must be http://host:port or https://host:port", text)
		}
		bases[i] = strings.TrimSuffix(text, "/")
	}
	return bases, nil
}

// client is what asks, as the user of the flags.
func (f *processFlags) client() (*control.Client, error) {
	if (f.user == "") != (f.passwordFile == "") {
		return nil, cli.Usagef("--user %q, --password-file %q: both or neither must be given", f.user,
			f.passwordFile)
	}
	return control.New(f.ca, f.user, f.passwordFile)
}

// process is the one to ask, the first where there are several.
func (f *processFlags) process(cmd *cobra.Command) (control.Process, error) {
	bases, err := f.bases(cmd)
	if err != nil {
		return control.Process{}, err
	}
	client, err := f.client()
	return control.Process{Client: client, Base: bases[0]}, err
}

// ask sends a request to that process.
func (f *processFlags) ask(cmd *cobra.Command, r control.Request, answer any) error {
	p, err := f.process(cmd)
	if err != nil {
		return err
	}
	return p.Ask(cmd.Context(), r, answer)
}
