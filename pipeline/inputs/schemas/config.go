package schemas

import (
	_ "embed"
	"net/url"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is where schemas are.
type Config struct {
	// Address, such as https://registry:8081; empty: none.
	URL string `yaml:"url" format:"url"`
	// PEM file of the authorities to trust; empty: the system's.
	CAFile string `yaml:"ca_file"`
	// User name; empty: no authentication.
	Username string `yaml:"username"`
	// Environment variable that holds the password.
	PasswordEnv string `yaml:"password_env"`
	// File that holds the password; a final line feed is ignored.
	PasswordFile string `yaml:"password_file"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if u, err := url.Parse(c.URL); err == nil && u.User != nil {
		r.Fail("url", setting.Quote(u.Redacted()), "must have no user in it: set @username")
	}
	switch {
	case c.Username == "" && c.PasswordEnv+c.PasswordFile != "":
		r.Fail("username", setting.Quote(""), "must not be empty where a password is named")
	case c.Username != "" && (c.PasswordEnv == "") == (c.PasswordFile == ""):
		r.Fail("username", setting.Quote(c.Username), "needs a password: set one of @password_env and @password_file")
	}
}
