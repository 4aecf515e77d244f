package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVariables(t *testing.T) {
	t.Setenv("BROKERS", "a:9092,b:9092")
	t.Setenv("PARTITIONS", "12")
	t.Setenv("PANE", "5s")
	t.Setenv("ON", "true")
	t.Setenv("DIR", "/var/lib/x: y #z")
	_, err := Parse([]byte("group: $${not}"), "f.yaml")
	if err == nil || !strings.Contains(err.Error(), "group: ") {
		t.Fatalf("got %v: $${ is ${, which a group must not have", err)
	}
	c, err := Parse([]byte(`
kafka: {brokers: "${BROKERS}", partitions: "${PARTITIONS}", client_id: "${UNSET_ID:-plumb}-1"}
topics:
  logits: ${PREFIX:-p}.logits
event_time:
  pane: ${PANE}
calibrated: {enabled: "${ON}"}
checkpoints:
  dir: ${DIR}
`), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Kafka.Brokers, []string{"a:9092", "b:9092"}) || c.Kafka.Partitions != 12 ||
		c.Kafka.ClientID != "plumb-1" || c.Topics.Logits != "p.logits" || c.EventTime.Pane != 5*time.Second ||
		!c.Calibrated.Enabled || c.Checkpoints.Dir != "/var/lib/x: y #z" {
		t.Errorf("got %+v %+v %v", c.Kafka, c.Topics, c.Checkpoints.Dir)
	}
}

// TestSizesHaveUnits: in the file as in the environment.
func TestSizesHaveUnits(t *testing.T) {
	t.Setenv("SIZE", "32MiB")
	for _, text := range []string{"32MiB", `"32MiB"`, "${SIZE}", "33_554_432", "${UNSET_SIZE:-0x2000000}"} {
		c, err := Parse([]byte("join:\n  memory_bytes: "+text+"\n"), "f.yaml")
		if err != nil || c.Join.MemoryBytes != 32<<20 {
			t.Errorf("%s: got %d, %v", text, c.Join.MemoryBytes, err)
		}
	}
	t.Setenv("SIZE", "010")
	if c, err := Parse([]byte("trainer: {max_rows: \"${SIZE}\"}"), "f.yaml"); err == nil {
		t.Errorf("010 is read as %d", c.Trainer.MaxRows)
	}
}

// TestMarkBeforeTheText: editors on Windows write a byte order mark.
func TestMarkBeforeTheText(t *testing.T) {
	c, err := Parse([]byte("\ufeffjoin: {memory_bytes: 32MiB}\n"), "f.yaml")
	if err != nil || c.Join.MemoryBytes != 32<<20 {
		t.Errorf("got %d, %v", c.Join.MemoryBytes, err)
	}
	_, err = Parse([]byte("\ufeffjion: {}\n"), "f.yaml")
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:1:1: jion: unknown key") {
		t.Errorf("got %v", err)
	}
}

// TestVariablesInErrors: a problem shows the text of the file, never what the environment holds.
func TestVariablesInErrors(t *testing.T) {
	const secret = "hunter2-is-secret"
	t.Setenv("SECRET", secret)
	for text, want := range map[string]string{
		`kafka: {partitions: "${SECRET}"}`:                "partitions: ${SECRET}: what the environment holds",
		`kafka: {brokers: "${SECRET}"}`:                   "kafka.brokers[0]: ${SECRET}: must be host:port",
		`kafka: {brokers: ["${SECRET}"]}`:                 "kafka.brokers[0]: ${SECRET}: must be host:port",
		`notify: {webhooks: [{url: "${SECRET}"}]}`:        "notify.webhooks[0].url: ${SECRET}: must match",
		`kafka: "${SECRET}"`:                              "must not be a variable",
		`group: ${NOT_SET_AT_ALL}`:                        "the environment variable NOT_SET_AT_ALL is not set",
		`group: ${9}`:                                     "must have variables as ${NAME}",
		`group: "${SECRET"`:                               "must have variables as ${NAME}",
		`notify: {external_url: "https://x/${SECRET}?a"}`: "external_url: https://x/${SECRET}?a: must have neither",
	} {
		_, err := Parse([]byte(text), "f.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
