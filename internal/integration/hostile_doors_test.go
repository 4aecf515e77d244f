//go:build integration

package integration

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
)

// The user of the broker's listener with TLS and SASL.
const (
	secureUser     = "plumbline"
	securePassword = "right-password"
)

func init() {
	hostile["doors-connect"] = doorsConnect
	hostile["doors-files"] = doorsFiles
	hostile["doors-login"] = doorsLogin
}

// connection is how a configuration connects.
type connection struct{ broker, ca, mechanism, user, password string }

// secured is the right connection to the listener with TLS and SASL; the test is skipped where the broker has none.
func secured(t *testing.T) connection {
	t.Helper()
	if secure == "" {
		t.Skip("PLUMBLINE_KAFKA_SECURE does not name a listener with TLS and SASL and its authority's file")
	}
	addr, ca, _ := strings.Cut(secure, ",")
	return connection{broker: addr, ca: ca, mechanism: "SCRAM-SHA-512", user: secureUser, password: securePassword}
}

// yaml is the connection as keys under kafka.
func (c connection) yaml(t *testing.T) string {
	t.Helper()
	out := fmt.Sprintf("  brokers: [%q]\n", c.broker)
	if c.ca != "" {
		out += fmt.Sprintf("  tls: {enabled: true, ca_file: %q}\n", c.ca)
	}
	if c.password != "" {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(c.password), 0o600); err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintf("  sasl: {mechanism: %s, username: %s, password_file: %q}\n", c.mechanism, c.user, file)
	}
	return out
}

// through makes the settings connect so.
func (c connection) through(t *testing.T, s settings) settings {
	t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	plain := fmt.Sprintf("  brokers: [\"%s\"]\n", strings.Join(brokers, `", "`))
	s.file = filepath.Join(t.TempDir(), "secure.yaml")
	if err := os.WriteFile(s.file, []byte(strings.Replace(string(text), plain, c.yaml(t), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// doorsConnect: whoever cannot connect is told why, and not to make topics.
func doorsConnect(t *testing.T, a *attack) {
	right := secured(t)
	a.Input, a.Before = "connections of which one part is wrong",
		`"[8] Broker Not Available", "EOF (plumbline topics create makes the topics)"`
	a.Note = "each names the key to look at"
	other := filepath.Join(t.TempDir(), "other.pem")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other",
		"-keyout", filepath.Join(t.TempDir(), "other.key"), "-out", other).CombinedOutput()
	if err != nil {
		t.Fatalf("openssl: %v\n%s", err, out)
	}
	plain := connection{broker: brokers[0]}
	for _, c := range []struct {
		name   string
		change func(*connection)
		want   string
	}{
		{"wrong password", func(c *connection) { c.password = "wrong" }, `refuses user "plumbline": wrong user name`},
		{"wrong password, PLAIN", func(c *connection) { c.password, c.mechanism = "wrong", "PLAIN" },
			`refuses user "plumbline": wrong user name`},
		{"another authority", func(c *connection) { c.ca = other }, "an authority that is not trusted here"},
		{"no user", func(c *connection) { c.password = "" }, "wants a user name"},
		{"no TLS", func(c *connection) { c.ca = "" }, "speaks TLS: set kafka.tls.enabled"},
		{"TLS to a listener without", func(c *connection) { c.broker = plain.broker }, "does not speak TLS"},
		{"a user for a listener without", func(c *connection) { c.broker, c.ca = plain.broker, "" },
			"takes no user name"},
		{"no broker", func(c *connection) { c.broker = "127.0.0.1:1" }, "no broker answers"},
		{"no such name", func(c *connection) { c.broker = "no-such-host.invalid:9092" }, "no broker answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wrong := right
			c.change(&wrong)
			file := filepath.Join(t.TempDir(), "plumbline.yaml")
			if err := os.WriteFile(file, []byte("kafka:\n"+wrong.yaml(t)), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"topics", "create"}, {"run"}, {"heads", "list"}} {
				out, err := exec.Command(binary, append(args, "-c", file)...).CombinedOutput()
				text := string(out)
				if err == nil || !strings.Contains(text, c.want) || strings.Contains(text, "topics create") ||
					strings.Contains(text, wrong.password) && wrong.password == securePassword {
					t.Errorf("%v: %v, %q, want %q", args, err, text, c.want)
				}
			}
		})
	}
}

// doorsFiles: whatever the umask, what holds rows and state is for its owner only, and what others left open is told.
func doorsFiles(t *testing.T, a *attack) {
	a.Input, a.Before = "umask 000, another user of the machine", "state, archive and history were readable by all"
	dir := t.TempDir()
	work, archive := filepath.Join(dir, "work"), filepath.Join(dir, "archive")
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("a secret of many bytes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{prefix: topicPrefix(t), listen: freePort(t), state: filepath.Join(dir, "state")}
	s.file = s.write(t, oneDay+fmt.Sprintf("models: [{name: m, classes: 10}]\njoin: {dir: %q}\n"+
		"archive: {directory: %q, roll_rows: 100}\nprivacy: {id_key_file: %q}\n", work, archive, key))
	runOK(t, "topics", "create", "-c", s.file)
	open := filepath.Join(archive, "old")
	if err := os.MkdirAll(open, 0o755); err != nil {
		t.Fatal(err)
	}
	before := syscall.Umask(0)
	p := run(t, s)
	syscall.Umask(before)
	writeFeed(t, s, repartitionFeed(t, partitions), func(_ int, m *feed.Message) []int {
		return []int{int(m.Partition)}
	})
	p.wait(time.Minute, "publish files", func() bool { return len(modes(archive)) > 4 })
	p.stop()
	for _, at := range []string{s.state, work, archive} {
		found := modes(at)
		if len(found) < 2 {
			t.Errorf("%s: only %v", at, found)
		}
		for name, mode := range found {
			if mode&0o077 != 0 && name != archive && name != open {
				t.Errorf("%s has mode %o", name, mode)
			}
		}
	}
	text, err := os.ReadFile(p.log)
	if err != nil || !strings.Contains(string(text), "chmod -R go=") || strings.Contains(string(text), "a secret") {
		t.Errorf("%v; no warning of the open directory, or the secret, in the log:\n%s", err, text)
	}
	a.Note = "files are 0600, directories 0700"
}

// modes are the permissions of everything in a tree.
func modes(dir string) map[string]os.FileMode {
	out := map[string]os.FileMode{}
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil {
			out[name] = info.Mode().Perm()
		}
		return nil
	})
	return out
}

var (
	troubled = regexp.MustCompile(`level=(WARN|ERROR)`)
	slow     = regexp.MustCompile(`i/o timeout|deadline exceeded|Unknown Member ID`)
)

// doorsLogin: a listener that wants a new login every ten seconds cuts no connection, and no row is lost or late.
func doorsLogin(t *testing.T, a *attack) {
	right := secured(t)
	a.Input, a.Before = "connections.max.reauth.ms=10000", `a fetch cut, "unexpected EOF", every few seconds`
	s := right.through(t, configure(t, oneDay+"models: [{name: m, classes: 10}]\n"))
	p := run(t, s)
	const session, rounds = 10 * time.Second, 2
	time.Sleep(rounds * session)
	writeFeed(t, s, repartitionFeed(t, partitions), func(_ int, m *feed.Message) []int {
		return []int{int(m.Partition)}
	})
	p.drain(repartitionRows, repartitionRows)
	time.Sleep(session)
	p.stop()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// A broker that had no time for an answer has cut nothing.
		if troubled.MatchString(line) && !slow.MatchString(line) {
			t.Errorf("warning in the log: %s", line)
		}
	}
	a.Note = "no warning, no connection cut"
}
