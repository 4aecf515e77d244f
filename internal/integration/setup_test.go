//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start is the event time of the first row of every stream. Kafka refuses timestamps ahead of its clock, and the
// "day" window holds a whole stream only if it opens at midnight.
var start = time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)

// settings is a configuration with names of its own on the shared broker.
type settings struct {
	prefix string // of topics and groups
	file   string // the YAML
	state  string // checkpoint directory
	listen string
	binary string // of the process; "" = the one under test

	registry *schemaRegistry // of schemas; nil = it needs none
	python   func() string   // the interpreter with the producers of formats
}

func (s settings) topic(name string) string { return s.prefix + "." + name }

// configure writes a configuration with fresh topic names; more is YAML appended to it. The topics are created.
func configure(t *testing.T, more string) settings {
	t.Helper()
	s := settings{prefix: topicPrefix(t), listen: freePort(t)}
	s.file = s.write(t, more)
	runOK(t, "topics", "create", "-c", s.file)
	return s
}

// write writes the configuration file and returns its path.
func (s settings) write(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	if s.state == "" {
		s.state = filepath.Join(dir, "state")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "kafka:\n  brokers: [\"%s\"]\n  replication: 1\n  partitions: %d\n", strings.Join(brokers, `", "`),
		partitions)
	b.WriteString("topics:\n  keyed: true\n")
	for _, name := range []string{"logits", "labels", "panes", "snapshots", "calibrators", "alerts", "decisions",
		"calibrated", "deadletter"} {
		fmt.Fprintf(&b, "  %s: %s\n", name, s.topic(name))
	}
	fmt.Fprintf(&b, "group: %s\n", s.prefix)
	fmt.Fprintf(&b, "checkpoints:\n  dir: %q\n  interval: 500ms\n", s.state)
	fmt.Fprintf(&b, "http:\n  listen: %q\n  pprof: true\n", s.listen)
	b.WriteString(strings.TrimSpace(more) + "\n")
	file := filepath.Join(dir, "plumbline.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const partitions = 4

func topicPrefix(t *testing.T) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	// Names must not meet those of an earlier run on a broker that keeps its data.
	return fmt.Sprintf("%s-%08x", name, rand.Uint32())
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
