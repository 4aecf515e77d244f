package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
)

// deploy writes a configuration file, of keyed topics where it does not say, and makes the topics that it names.
func deploy(t *testing.T, text string) (path string, cfg config.Config) {
	t.Helper()
	if strings.Contains(text, "topics: {keyed: ") {
		// It says so itself.
	} else if strings.Contains(text, "topics: {") {
		text = strings.Replace(text, "topics: {", "topics: {keyed: true, ", 1)
	} else {
		text += "\ntopics: {keyed: true}\n"
	}
	path = writeFile(t, "plumbline.yaml", text)
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "topics", "create", "-c", path)
	return path, cfg
}

// messagesOf are the predictions and labels of rows, all of one partition, 50 in a message.
func messagesOf(t *testing.T, rows []batchtest.Row, partition int) []kafka.Message {
	t.Helper()
	var ms []kafka.Message
	for _, r := range append(batchtest.Predictions(t, rows, 50), batchtest.Labels(t, batchtest.ByLabelTime(rows),
		50)...) {
		ms = append(ms, kafka.Message{Topic: "plumbline." + r.Topic, Partition: partition, Value: r.Value,
			Time: time.Unix(0, r.Time)})
	}
	return ms
}

// replayTopics is what `plumbline replay` finds in the topics.
func replayOfTopics(t *testing.T, path string) (res engine.ReplayResult) {
	t.Helper()
	if err := json.Unmarshal([]byte(run(t, "replay", "--topic", "-c", path, "--json")), &res); err != nil {
		t.Fatal(err)
	}
	return res
}
