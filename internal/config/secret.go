package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/plumbline/plumbline/internal/setting"
)

// Password reads the password from where the configuration says: an environment variable or a file. It is "" where
// no user name is set. The error names the key, never the password.
func (s SASL) Password() (string, error) {
	switch {
	case s.Username == "":
		return "", nil
	case s.PasswordEnv != "":
		return fromEnv("kafka.sasl.password_env", s.PasswordEnv)
	case s.PasswordFile != "":
		return fromFile("kafka.sasl.password_file", s.PasswordFile)
	}
	return "", fmt.Errorf("kafka.sasl: no password for user %q: set password_env or password_file", s.Username)
}

func fromEnv(key, name string) (string, error) {
	v, ok := os.LookupEnv(name)
	if !ok || v == "" {
		return "", fmt.Errorf("%s: %s: the environment variable is not set", key, name)
	}
	return v, nil
}

func fromFile(key, file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	v := strings.TrimRight(string(b), "\r\n")
	if v == "" {
		return "", fmt.Errorf("%s: %s: the file is empty", key, file)
	}
	return v, nil
}

// Address is the URL, from the file where it is in one. The error names the key and the file only.
func (w Webhook) Address() (string, error) {
	if w.URLFile == "" {
		return w.URL, nil
	}
	u, err := fromFile("notify.webhooks[].url_file", w.URLFile)
	if err == nil && !setting.IsURL(u) {
		err = fmt.Errorf("notify.webhooks[].url_file: %s: the file holds no http:// or https:// address", w.URLFile)
	}
	return u, err
}

// Secret is the key that signs, "" where there is none.
func (w Webhook) Secret() (string, error) {
	switch {
	case w.SecretEnv != "":
		return fromEnv("notify.webhooks[].secret_env", w.SecretEnv)
	case w.SecretFile != "":
		return fromFile("notify.webhooks[].secret_file", w.SecretFile)
	}
	return "", nil
}

// DSN is the address of PostgreSQL. It is "" where neither key is set: the driver then takes PGHOST and the like. The
// error names the key, never the address.
func (h History) DSN() (string, error) {
	switch {
	case h.DSNEnv != "":
		return fromEnv("history.dsn_env", h.DSNEnv)
	case h.DSNFile != "":
		return fromFile("history.dsn_file", h.DSNFile)
	}
	return "", nil
}
