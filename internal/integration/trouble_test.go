//go:build integration

package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// TestTroubles makes the mistakes of new producers: records in a format that nobody configured, and batches whose key
// is their first id where rows have to be sent by id. Log and status say so, and what mends it.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, kind, text, mend string }{
		"JSON into a topic of Arrow": {"group: G", "refused", "not_arrow at ", "Inputs in docs/schema.md"},
		"batches by their first id": {"topics: {keyed: true}", "apart", "of the last 1000 labels ",
			"topics.keyed is true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setUp(t, c.config)
			runOK(t, "topics", "create", "-c", s.file)
			p := run(t, s)
			sendMistake(t, s, c.kind)
			p.wait(time.Minute, "say what is lost", func() bool {
				for _, tr := range troubles(t, s) {
					if tr.Kind == c.kind && strings.Contains(tr.Text, c.text) && strings.Contains(tr.Mend, c.mend) {
						return true
					}
				}
				return false
			})
			log, err := os.ReadFile(p.log)
			// A line for each topic and reason.
			if n := strings.Count(string(log), `mend=`); err != nil || n < 1 || n > 2 {
				t.Errorf("the log says it %d times, %v\n%s", n, err, log)
			}
			p.stop()
		})
	}
}

type troubleStatus struct{ Kind, Text, Mend string }

func troubles(t *testing.T, s settings) []troubleStatus {
	t.Helper()
	r, err := http.Get("http://" + s.listen + "/api/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var st struct {
		Process struct{ Troubles []troubleStatus }
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &st)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st.Process.Troubles
}

// sendMistake sends the rows as such a producer does.
func sendMistake(t *testing.T, s settings, kind string) {
	t.Helper()
	rows := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	data := &inputData{rows.K, rows.Scores, rows.Label}
	format := "json"
	if kind == "apart" {
		format = "arrow"
	}
	var ms []kafka.Message
	for what, of := range map[string]struct {
		topic string
		batch int
	}{"predictions": {"logits", 50}, "labels": {"labels", 40}} {
		for from := 0; from < setupRows; from += of.batch {
			value, _ := inputRecords[format+" "+what](data, from, min(from+of.batch, setupRows))
			ms = append(ms, kafka.Message{Topic: s.topic(of.topic), Key: []byte(inputID(from)), Value: value,
				Time: rowTime(from)})
		}
	}
	w := &kafka.Writer{Addr: kafka.TCP(brokers...), Balancer: &kafka.Murmur2Balancer{Consistent: true},
		Transport: &kafka.Transport{}}
	if err := w.WriteMessages(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
