//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// cluster is three real brokers of the fault suite's own, which it may kill.
type cluster struct {
	env   []string
	addrs []string // by broker number
}

const clusterBrokers = 3

// The ports that kafka.sh gives the controllers and the listeners with TLS and SASL, above that of the first broker.
const (
	controllerPorts = 100
	securePorts     = 300
)

// brokerPort finds a port for kafka.sh: it and those that kafka.sh derives from it are free now, so that several
// suites and a developer's broker run on one machine.
func brokerPort() (int, error) {
	const first, last = 18092, 19002
	for port := first; port < last; port += 10 {
		if freePorts(port, port+controllerPorts, port+securePorts) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free for a broker and its listeners", first, last)
}

// freePorts says whether the first ports of every listener can be had, for each broker of a cluster.
func freePorts(listeners ...int) bool {
	for _, first := range listeners {
		for i := range clusterBrokers {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
			if err != nil {
				return false
			}
			l.Close()
		}
	}
	return true
}

// startCluster starts the brokers; they are stopped when the test ends.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kafka")
	port, err := brokerPort()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{env: append(os.Environ(), fmt.Sprintf("KAFKA_PORT=%d", port),
		fmt.Sprintf("KAFKA_BROKERS=%d", clusterBrokers), "KAFKA_DIR="+dir, "KAFKA_USER=",
		"KAFKA_MIN_INSYNC=2", "KAFKA_HEAP=384m", "KAFKA_WAIT=240")}
	t.Cleanup(func() { c.script(t, "stop") })
	c.addrs = strings.Split(c.script(t, "start"), ",")
	return c
}

// script runs kafka.sh on some brokers, or all, and returns what it prints.
func (c *cluster) script(t *testing.T, command string, numbers ...int) string {
	t.Helper()
	args := []string{command}
	for _, n := range numbers {
		args = append(args, fmt.Sprint(n))
	}
	cmd := exec.Command(filepath.Join(root, "deploy", "kafka", "kafka.sh"), args...)
	cmd.Env = c.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		text := fmt.Sprintf("kafka.sh %s: %v\n%s", strings.Join(args, " "), err, tail(stderr.Bytes()))
		if command == "start" { // nothing that follows could mean anything
			t.Fatal(text)
		}
		t.Error(text)
	}
	return strings.TrimSpace(string(out))
}

// kill is kill -9.
func (c *cluster) kill(t *testing.T, numbers ...int) {
	t.Helper()
	c.script(t, "kill", numbers...)
	t.Logf("killed brokers %v", numbers)
}

// start starts brokers that were killed.
func (c *cluster) start(t *testing.T, numbers ...int) {
	t.Helper()
	c.script(t, "start", numbers...)
	t.Logf("started brokers %v", numbers)
}

// client has no connection from before a broker was killed.
func (c *cluster) client(t *testing.T) *kafka.Client {
	transport := &kafka.Transport{MetadataTTL: time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(c.addrs...), Timeout: 10 * time.Second, Transport: transport}
}

// partitions asks for leaders and replicas.
func (c *cluster) partitions(t *testing.T, topic string) ([]kafka.Partition, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	res, err := c.client(t).Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	if err := res.Topics[0].Error; err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	for _, p := range res.Topics[0].Partitions {
		if p.Error != nil {
			return nil, fmt.Errorf("topic %s partition %d: %w", topic, p.ID, p.Error)
		}
	}
	return res.Topics[0].Partitions, nil
}

// leader returns the number of the broker that leads a partition.
func (c *cluster) leader(t *testing.T, topic string, partition int) int {
	t.Helper()
	number := -1
	within(t, time.Minute, "know the leader of "+topic, func() error {
		ps, err := c.partitions(t, topic)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(ps, func(p kafka.Partition) bool { return p.ID == partition })
		if i < 0 {
			return fmt.Errorf("no partition %d", partition)
		}
		number = ps[i].Leader.ID - 1 // node ids start at 1
		return nil
	})
	return number
}

// heal waits until every replica of the topics is in sync, the group coordinators' among them: then any one broker
// may go.
func (c *cluster) heal(t *testing.T, topics ...string) {
	t.Helper()
	within(t, 3*time.Minute, "bring all replicas in sync", func() error {
		for _, topic := range append([]string{"__consumer_offsets"}, topics...) {
			ps, err := c.partitions(t, topic)
			if err != nil {
				return err
			}
			for _, p := range ps {
				if len(p.Isr) < clusterBrokers {
					return fmt.Errorf("%s partition %d: %d replicas in sync", topic, p.ID, len(p.Isr))
				}
			}
		}
		return nil
	})
}

// within tries until there is no error. Unlike package eventually it has a limit: what is late is a failure.
func within(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("did not %s within %v: %v", what, limit, err)
		}
	}
}
