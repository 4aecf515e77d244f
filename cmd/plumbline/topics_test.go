package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// brokerConfig writes a configuration file for the brokers; extra are more lines of its kafka section.
func brokerConfig(t *testing.T, brokers []string, extra string) string {
	t.Helper()
	return writeFile(t, "plumbline.yaml", fmt.Sprintf("kafka:\n  brokers: [%q]\n%s", brokers[0], extra))
}

func TestTopicsCreateIsIdempotent(t *testing.T) {
	brokers := kafkatest.Start(t)
	file := brokerConfig(t, brokers, "  partitions: 3\n")
	for _, want := range []string{"created", "exists"} {
		code, out, stderr := runCommand(t, "topics", "create", "--json", "-c", file)
		var got struct{ Topics []kafkaclient.TopicStatus }
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone {
			t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, out, stderr)
		}
		if len(got.Topics) != 11 {
			t.Errorf("got %d topics, want 11", len(got.Topics))
		}
		for _, s := range got.Topics {
			if s.Status != want || s.Partitions != 3 {
				t.Errorf("got %+v, want %s with 3 partitions", s, want)
			}
		}
	}
	checkTopicSettings(t, brokers)
}

// checkTopicSettings asks the broker for what the topics were made with.
func checkTopicSettings(t *testing.T, brokers []string) {
	t.Helper()
	want := map[string]string{
		"plumbline.logits": "delete", "plumbline.panes": "delete", "plumbline.calibrators": "compact",
		"plumbline.heads": "compact", "plumbline.finetune": "delete", "plumbline.alerts": "compact,delete",
		"plumbline.decisions": "delete",
	}
	req := &kafka.DescribeConfigsRequest{}
	for topic := range want {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			ConfigNames: []string{"cleanup.policy", "max.message.bytes", "message.timestamp.type"},
		})
	}
	resp, err := (&kafka.Client{Addr: kafka.TCP(brokers...)}).DescribeConfigs(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.Resources {
		got := map[string]string{}
		for _, e := range r.ConfigEntries {
			got[e.ConfigName] = e.ConfigValue
		}
		stamps := "LogAppendTime"
		if r.ResourceName == "plumbline.logits" {
			stamps = "CreateTime"
		}
		if got["cleanup.policy"] != want[r.ResourceName] || got["max.message.bytes"] != "8454144" ||
			got["message.timestamp.type"] != stamps {
			t.Errorf("%s: got %v, want cleanup.policy %s, max.message.bytes 8454144 and message.timestamp.type %s",
				r.ResourceName, got, want[r.ResourceName], stamps)
		}
	}
}

func TestTopicsCreateReportsOtherPartitionCounts(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "plumbline.panes")
	code, out, stderr := runCommand(t, "topics", "create", "-c", brokerConfig(t, brokers, ""))
	if code != exitDone || !strings.Contains(out, "exists   plumbline.panes: 2 partitions") ||
		!strings.Contains(stderr, "partitions=2 configured=4") {
		t.Errorf("got exit code %d, stdout %q, stderr %q", code, out, stderr)
	}
}

func TestTopicsCreateRefusesLabelsOfOtherPartitioning(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "plumbline.labels")
	code, _, stderr := runCommand(t, "topics", "create", "-c", brokerConfig(t, brokers, "topics: {keyed: true}\n"))
	want := "topics plumbline.logits with 4 partitions and plumbline.labels with 2: must have the same number"
	if code != exitFailed || !strings.Contains(stderr, want) {
		t.Errorf("got exit code %d, stderr %q, want %d and %q", code, stderr, exitFailed, want)
	}
}

func TestTopicsCreateWithoutBroker(t *testing.T) {
	code, _, stderr := runCommand(t, "topics", "create", "-c", brokerConfig(t, []string{"127.0.0.1:1"}, ""))
	if code != exitFailed || !strings.Contains(stderr, "127.0.0.1:1: connect: connection refused (no broker answers") {
		t.Errorf("got exit code %d, stderr %q", code, stderr)
	}
}

// TestSmallTopics: a topic that takes shorter messages than are configured is named; those that are only read are not.
func TestSmallTopics(t *testing.T) {
	brokers := kafkatest.Start(t)
	req := &kafka.CreateTopicsRequest{Addr: kafka.TCP(brokers...)}
	for _, name := range []string{"plumbline.logits", "plumbline.snapshots"} {
		req.Topics = append(req.Topics, kafka.TopicConfig{Topic: name, NumPartitions: 4, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: "1048588"}}})
	}
	if _, err := (&kafka.Client{}).CreateTopics(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	code, _, errs := runCommand(t, "topics", "create", "-c", brokerConfig(t, brokers, ""))
	if code != exitDone || strings.Count(errs, "max.message.bytes") != 1 ||
		!strings.Contains(errs, "topic plumbline.snapshots takes at most 1048588 bytes") {
		t.Errorf("%d %s", code, errs)
	}
}
