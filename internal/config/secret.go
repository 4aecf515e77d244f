package config

import (
	"fmt"
	"os"
	"strings"
)

// Password reads the password from where the configuration says: an environment variable or a file. It is "" where
// no user name is set. The error names the key, never the password.
func (s SASL) Password() (string, error) {
	switch {
	case s.Username == "":
		return "", nil
	case s.PasswordEnv != "":
		p, ok := os.LookupEnv(s.PasswordEnv)
		if !ok || p == "" {
			return "", fmt.Errorf("kafka.sasl.password_env: %s: the environment variable is not set", s.PasswordEnv)
		}
		return p, nil
	case s.PasswordFile != "":
		b, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("kafka.sasl.password_file: %w", err)
		}
		p := strings.TrimRight(string(b), "\r\n")
		if p == "" {
			return "", fmt.Errorf("kafka.sasl.password_file: %s: the file is empty", s.PasswordFile)
		}
		return p, nil
	}
	return "", fmt.Errorf("kafka.sasl: no password for user %q: set password_env or password_file", s.Username)
}
