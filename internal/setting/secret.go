package setting

import (
	"fmt"
	"os"
	"strings"
)

// Secret returns the secret of the configuration keys key_env, which names an environment variable, and key_file; ""
// where neither is set.
func Secret(key, env, file string) (string, error) {
	switch {
	case env != "":
		return fromEnv(key+"_env", env)
	case file != "":
		return FromFile(key+"_file", file)
	}
	return "", nil
}

// fromEnv returns the secret in the environment variable called name. The error names the configuration key, never the
// secret.
func fromEnv(key, name string) (string, error) {
	v, ok := os.LookupEnv(name)
	if !ok || v == "" {
		return "", fmt.Errorf("%s: %s: the environment variable is not set", key, name)
	}
	return v, nil
}

// FromFile returns the secret in a file, without the line feed at its end. The error names the configuration key, never
// the secret.
func FromFile(key, file string) (string, error) {
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
