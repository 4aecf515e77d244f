package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Answers are what a first configuration file depends on.
type Answers struct {
	Brokers      []string
	User         string // of the brokers, by SASL over TLS; "" = neither
	PasswordFile string
	InlineLabels bool // labels travel in the messages of predictions
	Dir          string
	Alerts       string // base URL of an Alertmanager; "" = nobody is told
}

// Minimal returns a configuration file with the answers and nothing else. The caller checks it.
func Minimal(a Answers) []byte {
	var b strings.Builder
	b.WriteString("# plumbline. All other keys have defaults: plumbline config example prints them.\n" +
		"# Then: plumbline topics create -c FILE; plumbline run -c FILE\n")
	quoted := make([]string, len(a.Brokers))
	for i, broker := range a.Brokers {
		quoted[i] = strconv.Quote(broker)
	}
	fmt.Fprintf(&b, "kafka:\n  brokers: [%s]\n", strings.Join(quoted, ", "))
	if a.User != "" {
		fmt.Fprintf(&b, "  tls:\n    enabled: true # with the system's authorities; ca_file names others\n  sasl:\n"+
			"    username: %q\n    password_file: %q # or password_env\n", a.User, a.PasswordFile)
	}
	if a.InlineLabels {
		b.WriteString("\ntopics:\n  labels: \"\" # the label column travels with the logits\n")
	}
	fmt.Fprintf(&b, "\ncheckpoints:\n  dir: %q # the state; it must outlive the process\n", a.Dir)
	if a.Alerts != "" {
		fmt.Fprintf(&b, "\nnotify:\n  alertmanagers: [%q]\n", a.Alerts)
	}
	b.WriteString("\nhttp:\n  listen: 127.0.0.1:8080 # page, API, /metrics; http.web_config_file has TLS and users\n")
	return []byte(b.String())
}
