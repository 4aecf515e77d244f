package config

import (
	"github.com/plumbline/plumbline/internal/setting"
)

// DSN is the address of PostgreSQL. It is "" where neither key is set: the driver then takes PGHOST and the like. The
// error names the key, never the address.
func (h History) DSN() (string, error) {
	switch {
	case h.DSNEnv != "":
		return setting.FromEnv("history.dsn_env", h.DSNEnv)
	case h.DSNFile != "":
		return setting.FromFile("history.dsn_file", h.DSNFile)
	}
	return "", nil
}
