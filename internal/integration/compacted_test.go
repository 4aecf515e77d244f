//go:build integration

package integration

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestCompactedPanes: a panes topic that is compacted refuses what says that panes are complete. topics create, doctor
// and the status say so, with the command that mends it, and once it is mended no number is missing.
func TestCompactedPanes(t *testing.T) {
	t.Parallel()
	want := goodHash(t)
	s := settings{prefix: topicPrefix(t), listen: freePort(t)}
	s.file = s.write(t, oneDay)
	panes := s.topic("panes")
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	made, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: panes,
		NumPartitions: partitions, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"},
			{ConfigName: "max.message.bytes", ConfigValue: "16777216"}}}}})
	if err == nil {
		err = made.Errors[panes]
	}
	if err != nil {
		t.Fatal(err)
	}
	mend := "--entity-name " + panes + " --add-config cleanup.policy=delete"
	out, err := exec.Command(binary, "topics", "create", "-c", s.file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), panes+": 4 partitions, cleanup compact\n") ||
		!strings.Contains(string(out), mend) {
		t.Errorf("topics create: %v\n%s", err, out)
	}
	said, err := exec.Command(binary, "doctor", "-c", s.file).Output()
	if err == nil || !strings.Contains(string(said), mend) {
		t.Errorf("doctor ends with %v and says\n%s", err, said)
	}
	p := run(t, s)
	kafkatest.Write(t, brokers, goodStream(t, s)...)
	p.wait(time.Minute, "name the topic's fault", func() bool {
		err := p.get("/-/ready", nil)
		return err != nil && strings.Contains(err.Error(), "not ready: shard")
	})
	p.wait(time.Minute, "name what mends it", func() bool {
		var st struct {
			Process struct{ Failing []struct{ Cause string } }
		}
		p.mustGet("/api/v1/status", &st)
		for _, f := range st.Process.Failing {
			if strings.Contains(f.Cause, panes+" partition") && strings.Contains(f.Cause, "cleanup.policy is delete") {
				return true
			}
		}
		return false
	})
	set, err := client.IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceType: kafka.ResourceTypeTopic,
			ResourceName: panes, Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "cleanup.policy",
				Value: "delete", ConfigOperation: kafka.ConfigOperationSet}}}}})
	if err == nil {
		err = set.Resources[0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
	p.drain(goodRows, goodRows)
	if got := p.hashOf("good"); got != want {
		t.Errorf("the state is %s, want that of a run without a fault, %s", got, want)
	}
	p.stop()
	log, err := os.ReadFile(p.log)
	if err != nil || !strings.Contains(string(log), `msg=stopped because="terminated signal received"`) {
		t.Errorf("the log does not say that it stopped: %v\n%s", err, tail(log))
	}
}
