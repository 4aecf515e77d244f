package registry

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// Databases of Config.Store.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// dialect is what differs between the databases: how to connect, and how a statement's arguments and locks are written.
type dialect interface {
	// open returns a pool for writing and one for reading, which may be the same. It connects to nothing yet.
	open() (write, read *sql.DB, err error)
	// bind writes the arguments "?" of a statement.
	bind(statement string) string
	// forUpdate ends a SELECT whose row nobody else may change before the transaction ends.
	forUpdate() string
	// lockSchema is a statement that lets one process at a time change the schema; "" where a transaction does.
	lockSchema() string
	// gone reports whether what was opened is no more what a new open would find.
	gone() bool
}

// sqliteFile is a database in a file. One connection writes, some read beside it (write-ahead log); another process on the
// same machine may use the file too.
type sqliteFile struct {
	path string
	busy time.Duration // wait for another process's lock
}

func newSQLite(c *Config) (*sqliteFile, error) {
	if c.Path == "" {
		return nil, errors.New("history.path: must not be empty")
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, fmt.Errorf("history.path %q: %w", c.Path, err)
	}
	return &sqliteFile{path: path, busy: c.Timeout / 2}, nil
}

func (f *sqliteFile) open() (write, read *sql.DB, err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return nil, nil, err
	}
	// What is committed survives a crash of the process; what a power failure takes is read from the topics again.
	pragmas := url.Values{"_pragma": {"busy_timeout(" + strconv.FormatInt(f.busy.Milliseconds(), 10) + ")", "journal_mode(WAL)", "synchronous(NORMAL)"}}
	dsn := "file:" + (&url.URL{Path: f.path}).EscapedPath() + "?"
	if read, err = sql.Open("sqlite", dsn+pragmas.Encode()); err != nil {
		return nil, nil, err
	}
	read.SetMaxOpenConns(4)
	pragmas.Set("_txlock", "immediate")
	if write, err = sql.Open("sqlite", dsn+pragmas.Encode()); err != nil {
		_ = read.Close()
		return nil, nil, err
	}
	write.SetMaxOpenConns(1)
	return write, read, nil
}

func (f *sqliteFile) bind(statement string) string { return statement }
func (f *sqliteFile) forUpdate() string            { return "" }
func (f *sqliteFile) lockSchema() string           { return "" }

// gone reports whether somebody has removed the file: what is written to it from here on nobody sees.
func (f *sqliteFile) gone() bool {
	_, err := os.Stat(f.path)
	return errors.Is(err, os.ErrNotExist)
}

// postgres is a database on a server, which all processes of a group may share.
type postgres struct{ config *pgx.ConnConfig }

func newPostgres(c *Config) (*postgres, error) {
	config, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, errors.New("history: the address of the database cannot be read: it must be postgres://user@host/database?sslmode=verify-full or such words as host=… user=… dbname=…")
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > c.Timeout {
		config.ConnectTimeout = c.Timeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "plumbline"
	}
	return &postgres{config}, nil
}

func (p *postgres) open() (write, read *sql.DB, err error) {
	db := stdlib.OpenDB(*p.config)
	db.SetMaxOpenConns(4)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, db, nil
}

func (p *postgres) bind(statement string) string {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

func (p *postgres) forUpdate() string { return " FOR UPDATE" }

// schemaLock is a number that nobody else uses for an advisory lock, one hopes.
const schemaLock = 0x706c756d626c696e

func (p *postgres) lockSchema() string {
	return "SELECT pg_advisory_xact_lock(" + strconv.Itoa(schemaLock) + ")"
}

func (p *postgres) gone() bool { return false }
