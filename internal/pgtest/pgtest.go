package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/lib/pq" // registers the driver "postgres"
)

// Password is that of the user of every server.
const Password = "s3cret/of+the=test"

// startTime bounds how long a server may take to answer.
const startTime = 5 * time.Minute

// starts bounds how often one that ends before it answers is started again.
const starts = 20

// ErrAbsent says that there is no PostgreSQL that could be started.
var ErrAbsent = errors.New("no PostgreSQL: neither initdb on the PATH nor /usr/lib/postgresql, " +
	"or no user but root (Debian: apt-get install postgresql)")

// Server is a running PostgreSQL on loopback, with its data in a temporary directory.
type Server struct {
	Address string // host:port
	bin     string
	dir     string // with data, log and password
	proc    *exec.Cmd
	ended   chan struct{} // closed when proc has
	number  atomic.Int64
}

// Start starts a server that ends with the test, which is skipped where there is none.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// New initialises and starts a server; whoever calls it closes it.
func New() (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.dir, err = os.MkdirTemp("", "pgtest-"); err != nil {
		return nil, err
	}
	if err := s.make(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) make() error {
	pass := filepath.Join(s.dir, "password")
	if err := os.WriteFile(pass, []byte(Password), 0o644); err != nil {
		return err
	}
	if err := give(s.dir); err != nil {
		return err
	}
	init, err := s.command("initdb", "-D", s.data(), "-U", "plumbline", "--auth=scram-sha-256", "--pwfile="+pass,
		"--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	if err != nil {
		return err
	}
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Address = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	return s.Launch()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// programs is the directory of initdb and postgres; the newest version where there are several.
func programs() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrAbsent
	}
	version := func(p string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(p))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// command is one of the programs, run by a user who is not root: PostgreSQL refuses that.
func (s *Server) command(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	return cmd, demote(cmd)
}

// Launch starts the server and waits until it answers: after Kill it goes on with what was committed. One that ends
// before is started again: children of a server that was killed may hold its memory for a moment.
func (s *Server) Launch() error {
	db, err := sql.Open("postgres", s.dsn("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if err := s.start(); err != nil {
		return err
	}
	for left := starts; ; {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || left == 0 {
			text, _ := os.ReadFile(s.log())
			return fmt.Errorf("PostgreSQL does not answer: %w\n%s", err, text)
		}
		time.Sleep(50 * time.Millisecond)
		select {
		case <-s.ended:
			left--
			if err := s.start(); err != nil {
				return err
			}
		default:
		}
	}
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// start starts the program.
func (s *Server) start() error {
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd, err := s.command("postgres", "-D", s.data(), "-h", "127.0.0.1", "-p", port, "-k", s.dir,
		"-c", "dynamic_shared_memory_type=mmap") // in the data directory: one that is killed leaves nothing elsewhere
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.proc, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Kill ends the server at once, as a power failure does.
func (s *Server) Kill() {
	if s.proc != nil {
		kill(s.proc)
		<-s.ended
		_ = os.Remove(filepath.Join(s.data(), "postmaster.pid"))
		s.proc = nil
	}
}

// Close ends the server and removes its data.
func (s *Server) Close() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

func (s *Server) dsn(database string) string {
	host, port, _ := net.SplitHostPort(s.Address)
	return fmt.Sprintf("host=%s port=%s user=plumbline password=%s dbname=%s sslmode=disable", host, port, Password,
		database)
}

// Database makes an empty database and returns its address.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	db, err := sql.Open("postgres", s.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	name := fmt.Sprintf("test%d", s.number.Add(1))
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	return s.dsn(name)
}
