package config

import "time"

// Values of history.store.
const (
	HistoryOff      = "off"
	HistorySQLite   = "sqlite"
	HistoryPostgres = "postgres"
)

// History is the database of what was decided. Its address may hold a password: that comes from a file or an environment
// variable, never from the YAML.
type History struct {
	Store   string        `yaml:"store"`    // HistoryOff, HistorySQLite or HistoryPostgres
	Path    string        `yaml:"path"`     // of SQLite's file; "" = in the work directory
	DSNEnv  string        `yaml:"dsn_env"`  // of PostgreSQL
	DSNFile string        `yaml:"dsn_file"` // of PostgreSQL
	Rows    int64         `yaml:"rows"`     // entries of a model
	MaxAge  time.Duration `yaml:"max_age"`  // event time; 0 = no bound
	Timeout time.Duration `yaml:"timeout"`  // wall clock, of one transaction or query
}

// DSN is the address of PostgreSQL. It is "" where neither key is set: the driver then takes PGHOST and the like. The error names
// the key, never the address.
func (h History) DSN() (string, error) {
	switch {
	case h.DSNEnv != "":
		return fromEnv("history.dsn_env", h.DSNEnv)
	case h.DSNFile != "":
		return fromFile("history.dsn_file", h.DSNFile)
	}
	return "", nil
}

func (ck *checker) history(h History) {
	if h.DSNEnv != "" && h.DSNFile != "" {
		ck.fail("history.dsn_file", quoted(h.DSNFile), "only one of dsn_env and dsn_file may be set")
	}
	for _, k := range []struct{ key, value string }{{"dsn_env", h.DSNEnv}, {"dsn_file", h.DSNFile}} {
		if k.value != "" && h.Store != HistoryPostgres {
			ck.fail("history."+k.key, quoted(k.value), "has no effect while history.store is %s", h.Store)
		}
	}
	if h.Path != "" && h.Store != HistorySQLite {
		ck.fail("history.path", quoted(h.Path), "has no effect while history.store is %s", h.Store)
	}
}

// withHistory adds the keys of the history to the table of fields.
func withHistory(m map[string]field) map[string]field {
	m["history"] = text("Database of every decision, calibrator, alert and head with its evidence, for the page, the API and `plumbline history`. It is filled from the topics: one that was deleted is filled anew.")
	m["history.store"] = oneOf("sqlite: a file of each process; postgres: a server that all processes may share; off: none.", HistorySQLite, HistoryPostgres, HistoryOff)
	m["history.path"] = text("SQLite's file, one for each machine, on a disk of its own; empty: history-GROUP@HOST.db in join.dir, or in work in checkpoints.dir.")
	m["history.dsn_env"] = text("Environment variable that holds the address of PostgreSQL: postgres://user:password@host/database?sslmode=verify-full; or")
	m["history.dsn_file"] = text("file that holds it; neither: PGHOST, PGUSER, PGPASSWORD and so on.")
	m["history.rows"] = number("Newest entries of a model that are kept; 0: no bound.", 0, 1e9)
	m["history.max_age"] = duration("Event time between an entry and the newest of its model from which it goes; 0: never.", 0)
	m["history.timeout"] = duration("Wall clock of one transaction or query.", 100*time.Millisecond)
	return m
}
