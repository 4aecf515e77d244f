package config

import (
	"fmt"

	"github.com/plumbline/plumbline/internal/setting"
)

// Address is the URL, from the file where it is in one. The error names the key and the file only.
func (w Webhook) Address() (string, error) {
	if w.URLFile == "" {
		return w.URL, nil
	}
	u, err := setting.FromFile("notify.webhooks[].url_file", w.URLFile)
	if err == nil && !setting.IsURL(u) {
		err = fmt.Errorf("notify.webhooks[].url_file: %s: the file holds no http:// or https:// address", w.URLFile)
	}
	return u, err
}

// Secret is the key that signs, "" where there is none.
func (w Webhook) Secret() (string, error) {
	switch {
	case w.SecretEnv != "":
		return setting.FromEnv("notify.webhooks[].secret_env", w.SecretEnv)
	case w.SecretFile != "":
		return setting.FromFile("notify.webhooks[].secret_file", w.SecretFile)
	}
	return "", nil
}

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
