package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/doctor"
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
		if len(got.Topics) != 13 { // two of them into which it splits others by id
			t.Errorf("got %d topics, want 13", len(got.Topics))
		}
		for _, s := range got.Topics {
			if s.Status != want || s.Partitions != 3 {
				t.Errorf("got %+v, want %s with 3 partitions", s, want)
			}
		}
	}
	checkTopicSettings(t, brokers)
}

// TestTopicsCreateWarnsOfPartitions: a topic that exists with another number of partitions is named, unless it is one
// of inputs, which may have any.
func TestTopicsCreateWarnsOfPartitions(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 7, "rows", "plumbline.panes")
	file := brokerConfig(t, brokers, "  partitions: 3\ninputs: [{topic: rows, model: m}]\n")
	code, out, stderr := runCommand(t, "topics", "create", "-c", file)
	if code != exitDone || !strings.Contains(out, "exists   rows: 7 partitions") ||
		!strings.Contains(stderr, "topic=plumbline.panes partitions=7 configured=3") ||
		strings.Contains(stderr, "topic=rows") {
		t.Errorf("exit code %d, %s\n%s", code, out, stderr)
	}
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
	for _, name := range []string{"plumbline.logits", "plumbline.snapshots", byIDTopic} {
		req.Topics = append(req.Topics, kafka.TopicConfig{Topic: name, NumPartitions: 4, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: "1048588"}}})
	}
	if _, err := (&kafka.Client{}).CreateTopics(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	code, _, errs := runCommand(t, "topics", "create", "-c", brokerConfig(t, brokers, ""))
	if code != exitDone || strings.Count(errs, "max.message.bytes") != 2 ||
		!strings.Contains(errs, "topic plumbline.snapshots takes at most 1048588 bytes") ||
		!strings.Contains(errs, "topic "+byIDTopic+" takes at most 1048588 bytes") {
		t.Errorf("%d %s", code, errs)
	}
}

// unfit makes topics of a deployment with settings that do harm, and some with settings that are different and do not.
func unfit(t *testing.T, brokers []string) {
	t.Helper()
	req := &kafka.CreateTopicsRequest{Addr: kafka.TCP(brokers...)}
	for name, settings := range map[string][]string{
		"plumbline.logits":      {"cleanup.policy", "compact"},
		"plumbline.panes":       {"cleanup.policy", "compact,delete"},
		"plumbline.snapshots":   {"cleanup.policy", "compact"},
		"plumbline.calibrators": {"cleanup.policy", "delete"},
		"plumbline.checkpoints": {"cleanup.policy", "compact,delete"},
		"plumbline.decisions":   {"retention.ms", "604800000"},
		"plumbline.alerts":      {"cleanup.policy", "compact"},
		"plumbline.heads":       {"cleanup.policy", "delete"},                       // not used
		"plumbline.labels":      {"retention.ms", "604800000"},                      // as usual
		"plumbline.finetune":    {"cleanup.policy", "delete", "retention.ms", "-1"}, // harmless
		"plumbline.deadletter":  {"message.timestamp.type", "CreateTime"},
		byIDTopic:               {"cleanup.policy", "compact"},
	} {
		topic := kafka.TopicConfig{Topic: name, NumPartitions: 4, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: "8454144"},
				{ConfigName: "message.timestamp.type", ConfigValue: "LogAppendTime"}}}
		for i := 0; i < len(settings); i += 2 {
			topic.ConfigEntries = append(topic.ConfigEntries,
				kafka.ConfigEntry{ConfigName: settings[i], ConfigValue: settings[i+1]})
		}
		req.Topics = append(req.Topics, topic)
	}
	resp, err := (&kafka.Client{}).CreateTopics(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range resp.Errors {
		if err != nil {
			t.Fatal(name, err)
		}
	}
}

// byIDTopic is one of those that shards read in place of what producers write.
const byIDTopic = "plumbline.plumbline.logits-by-id-4"

// mends are the settings that mend what unfit makes.
var mends = map[string]string{
	"plumbline.logits":      "cleanup.policy=delete",
	"plumbline.panes":       "cleanup.policy=delete",
	"plumbline.snapshots":   "cleanup.policy=delete",
	"plumbline.calibrators": "cleanup.policy=compact",
	"plumbline.checkpoints": "cleanup.policy=compact",
	"plumbline.decisions":   "retention.ms=-1,retention.bytes=-1",
	"plumbline.deadletter":  "message.timestamp.type=LogAppendTime",
	byIDTopic:               "cleanup.policy=delete",
}

// TestUnfitTopics: of topics that exist the real settings are shown, and those that do harm are named with the command
// that mends them, by topics create, by doctor and at the start.
func TestUnfitTopics(t *testing.T) {
	brokers := kafkatest.Start(t)
	unfit(t, brokers)
	file := brokerConfig(t, brokers, "checkpoints: {store: topic, dir: "+t.TempDir()+"}\n")
	code, out, errs := runCommand(t, "topics", "create", "-c", file)
	if code != exitDone {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	for topic, policy := range map[string]string{"logits": "compact", "panes": "compact,delete", "labels": "delete",
		"calibrators": "delete", "alerts": "compact", "deadletter": "delete", "heads": "delete"} {
		line := "plumbline." + topic + ": 4 partitions, cleanup " + policy + "\n"
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	if n := strings.Count(errs, "level=WARN"); n != len(mends) {
		t.Errorf("%d warnings, want %d:\n%s", n, len(mends), errs)
	}
	code, found, _ := runCommand(t, "doctor", "--json", "-c", file)
	var report doctor.Report
	if err := json.Unmarshal([]byte(found), &report); err != nil || code != exitFailed {
		t.Fatalf("%d %v %s", code, err, found)
	}
	said := 0
	for topic, settings := range mends {
		mend := "kafka-configs.sh --bootstrap-server " + brokers[0] + " --alter --entity-type topics --entity-name " +
			topic + " --add-config " + settings
		if !strings.Contains(errs, mend+`"`) {
			t.Errorf("topics create does not say %q:\n%s", mend, errs)
		}
		state := doctor.Bad
		if topic == "plumbline.decisions" || topic == "plumbline.deadletter" {
			state = doctor.Warn
		}
		for _, f := range report.Findings {
			if f.Do == mend && f.State == state && strings.Contains(f.Found, "topic "+topic+" has ") {
				said++
			}
		}
	}
	if said != len(mends) {
		t.Errorf("doctor names %d of %d topics:\n%s", said, len(mends), found)
	}
}

// TestTopicSettingsMayBeHidden: a user who may not look at the settings of topics is told so, and nothing fails.
func TestTopicSettingsMayBeHidden(t *testing.T) {
	file := guarded(t, "topic plumbline* Read,Write,Describe,Create", "topic plumbline.panes DescribeConfigs",
		"group plumbline* Read")
	code, out, errs := runCommand(t, "topics", "create", "-c", file)
	if code != exitDone || !strings.Contains(out, "plumbline.logits: 2 partitions, cleanup not known") ||
		!strings.Contains(out, "plumbline.panes: 2 partitions, cleanup delete") ||
		!strings.Contains(errs, "settings of topics plumbline.logits") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	f := examine(t, file)["topics"]
	if f.State != doctor.Unknown || !strings.Contains(f.Do, "DescribeConfigs") ||
		!strings.Contains(f.Found, "plumbline.logits") || strings.Contains(f.Found, "plumbline.panes") {
		t.Errorf("doctor: %+v", f)
	}
}
