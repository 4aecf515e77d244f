package kafkaio

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the connection to the brokers.
type Config struct {
	// First brokers to ask.
	Brokers []string `yaml:"brokers" default:"127.0.0.1:9092" required:"true" format:"address"`
	// Name in the logs and quotas of the brokers.
	ClientID string `yaml:"client_id" default:"plumbline" required:"true"`
	// Most bytes of a partition read ahead at a time; requests for rows ask for an eighth.
	FetchMax int `yaml:"fetch_max_bytes" default:"8MiB" min:"1KiB" max:"1GiB"`
	// Largest message that is decoded or produced; larger ones go to the dead-letter topic.
	MessageMax int `yaml:"message_max_bytes" default:"8MiB" min:"1KiB" max:"1GiB"`
	// Most bytes of a value that its dead letter quotes; 0: none.
	DeadLetter int `yaml:"dead_letter_bytes" default:"64KiB" min:"0" max:"1MiB"`
	// Session of the consumer groups: a broker that hears nothing from a process for this long gives its partitions to
	// others. Raise it on slow machines, within the broker's bounds (group.max.session.timeout.ms).
	Session time.Duration `yaml:"session_timeout" default:"10s" min:"6s"`
	// Encryption to the brokers.
	TLS TLS `yaml:"tls"`
	// Authentication by password. The password never stands in this file.
	SASL SASL `yaml:"sasl"`
	// Replication factor of topics that `topics create` makes.
	Replication int `yaml:"replication" default:"1" min:"1" max:"32_767"`
	// Partitions of topics that `topics create` makes.
	Partitions int `yaml:"partitions" default:"4" min:"1" max:"100_000"`
}

// TLS turns on encryption to the brokers. With a certificate the brokers can tell who connects.
type TLS struct {
	// Connect by TLS.
	Enabled bool `yaml:"enabled"`
	// PEM file of the authorities to trust; empty: the system's.
	CAFile string `yaml:"ca_file"`
	// PEM file of the client certificate, read for each connection; empty: none.
	CertFile string `yaml:"cert_file"`
	// PEM file of its private key.
	KeyFile string `yaml:"key_file"`
}

// SASL mechanisms.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
)

// SASL is authentication by password. The password comes from a file or an environment variable, never from the YAML.
type SASL struct {
	// PLAIN sends the password: use it with TLS only.
	Mechanism string `yaml:"mechanism" default:"PLAIN" enum:"PLAIN|SCRAM-SHA-256|SCRAM-SHA-512"`
	// User name; empty: no authentication.
	Username string `yaml:"username"`
	// Environment variable that holds the password.
	PasswordEnv string `yaml:"password_env"`
	// File that holds the password, read at each log-in; a final line feed is ignored.
	PasswordFile string `yaml:"password_file"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.FetchMax < c.MessageMax {
		r.Fail("fetch_max_bytes", c.FetchMax, "must be at least @message_max_bytes, %d", c.MessageMax)
	}
}

// Check implements the check of conditions between keys.
func (t TLS) Check(r *setting.Report) {
	for _, f := range []struct{ key, name string }{
		{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile},
	} {
		if f.name != "" && !t.Enabled {
			r.Fail(f.key, setting.Quote(f.name), "has no effect while @enabled is false")
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		r.Fail("cert_file", setting.Quote(t.CertFile), "must be set together with @key_file (%q)", t.KeyFile)
	}
}

// Check implements the check of conditions between keys.
func (s SASL) Check(r *setting.Report) {
	switch {
	case s.Username == "" && s.PasswordEnv+s.PasswordFile != "":
		r.Fail("username", setting.Quote(""), "must not be empty where a password is named")
	case s.Username != "" && s.PasswordEnv == "" && s.PasswordFile == "":
		r.Fail("username", setting.Quote(s.Username), "needs a password: set @password_env or @password_file")
	case s.PasswordEnv != "" && s.PasswordFile != "":
		r.Fail("password_file", setting.Quote(s.PasswordFile), "only one of password_env and password_file may be set")
	}
}

// Password reads the password from where the configuration says: an environment variable or a file. It is "" where
// no user name is set. The error names the key, never the password.
func (s SASL) Password() (string, error) {
	switch {
	case s.Username == "":
		return "", nil
	case s.PasswordEnv+s.PasswordFile == "":
		return "", fmt.Errorf("kafka.sasl: no password for user %q: set password_env or password_file", s.Username)
	}
	return setting.Secret("kafka.sasl.password", s.PasswordEnv, s.PasswordFile)
}
