package registry

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Databases of Config.Store.
const (
	Off      = "off"
	File     = "file"
	Postgres = "postgres"
)

// Config is the database of decisions. Its address may hold a password: that comes from a file or an environment
// variable, never from the YAML.
type Config struct {
	// file: a file of each process; postgres: a server that all processes may share; off: none.
	Store string `yaml:"store" default:"file" enum:"file|postgres|off"`
	// The file: one for each machine, on a local disk; empty: history-GROUP@HOST.db in join.dir.
	Path string `yaml:"path"`
	// Environment variable that holds the address of PostgreSQL:
	// postgres://user:password@host/database?sslmode=verify-full.
	DSNEnv string `yaml:"dsn_env"`
	// File that holds the address; neither dsn_env nor dsn_file: PGHOST, PGUSER, PGPASSWORD and so on.
	DSNFile string `yaml:"dsn_file"`
	// Newest entries of a model that are kept; 0: no bound.
	Rows int64 `yaml:"rows" default:"100_000" min:"0" max:"1_000_000_000"`
	// An entry is deleted when it is this much older than the newest of its model; 0: never.
	MaxAge time.Duration `yaml:"max_age"`
	// Wall clock of one transaction or query.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"100ms"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.DSNEnv != "" && c.DSNFile != "" {
		r.Fail("dsn_file", setting.Quote(c.DSNFile), "only one of dsn_env and dsn_file may be set")
	}
	for _, k := range []struct{ key, value, store string }{
		{"dsn_env", c.DSNEnv, Postgres}, {"dsn_file", c.DSNFile, Postgres},
		{"path", c.Path, File},
	} {
		if k.value != "" && c.Store != k.store {
			r.Fail(k.key, setting.Quote(k.value), "has no effect while @store is %s", c.Store)
		}
	}
}

// dsn is the address of PostgreSQL. It is "" where neither key is set: the driver then takes PGHOST and the like. The
// error names the key, never the address.
func (c Config) dsn() (string, error) { return setting.Secret("history.dsn", c.DSNEnv, c.DSNFile) }

// Options are a configuration with the address that it names.
type Options struct {
	Config
	DSN string // of PostgreSQL; never shown
}

// OptionsAt reads the address of PostgreSQL. Path is where the file is.
func (c Config) OptionsAt(path string) (Options, error) {
	dsn, err := c.dsn()
	c.Path = path
	return Options{Config: c, DSN: dsn}, err
}
