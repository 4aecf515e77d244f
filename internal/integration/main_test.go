//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backends"
)

// Set once by TestMain.
var (
	root    string   // of the repository
	binary  string   // plumbline
	brokers []string // of the real Kafka
	secure  string   // ADDRESS,FILE: its listener with TLS and SASL, and the authority to trust; "" = it has none
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if root, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return fail("find the repository: %v", err)
	}
	dir, err := os.MkdirTemp("", "plumbline-integration-")
	if err != nil {
		return fail("temporary directory: %v", err)
	}
	defer os.RemoveAll(dir)

	if binary = os.Getenv("PLUMBLINE_BIN"); binary == "" {
		binary = filepath.Join(dir, "plumbline")
		args := []string{"build", "-o", binary}
		if slices.Contains(linkedBackends(), backends.Gorgonia) {
			args = append(args, "-tags", "gorgonia")
		}
		build := exec.Command("go", append(args, "./cmd/plumbline")...)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return fail("build the binary: %v\n%s", err, out)
		}
	}
	if list := os.Getenv("PLUMBLINE_KAFKA"); list != "" {
		brokers, secure = strings.Split(list, ","), os.Getenv("PLUMBLINE_KAFKA_SECURE")
		return m.Run()
	}
	script := filepath.Join(root, "deploy", "kafka", "kafka.sh")
	// Its own port and directory, so that a developer's broker is not disturbed.
	kafkaDir := filepath.Join(dir, "kafka")
	port, err := brokerPort()
	if err != nil {
		return fail("start kafka: %v", err)
	}
	env := append(os.Environ(), fmt.Sprintf("KAFKA_PORT=%d", port), "KAFKA_BROKERS=1", "KAFKA_DIR="+kafkaDir,
		"KAFKA_USER="+secureUser+":"+securePassword, "KAFKA_REAUTH_MS=10000",
		"KAFKA_SESSION_MS=60000") // a machine that stands still for a while must not fence its only broker
	start := exec.Command(script, "start")
	start.Env, start.Stderr = env, os.Stderr
	out, err := start.Output()
	defer func() {
		stop := exec.Command(script, "stop")
		stop.Env, stop.Stderr = env, os.Stderr
		if err := stop.Run(); err != nil {
			fail("stop kafka: %v", err)
		}
	}()
	if err != nil {
		return fail("start kafka: %v", err)
	}
	brokers = strings.Split(strings.TrimSpace(string(out)), ",")
	secure = fmt.Sprintf("127.0.0.1:%d,%s", port+securePorts, filepath.Join(kafkaDir, "ca.pem"))
	return m.Run()
}

func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "integration: "+format+"\n", args...)
	return 1
}
