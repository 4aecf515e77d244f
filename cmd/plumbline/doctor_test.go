package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	login "github.com/segmentio/kafka-go/sasl/plain"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/doctor"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// examine runs the doctor and returns what it finds, by check; of several findings the last that is not ok.
func examine(t *testing.T, file string) map[string]doctor.Finding {
	t.Helper()
	code, out, stderr := runCommand(t, "doctor", "--json", "-c", file)
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, out, stderr)
	}
	got := map[string]doctor.Finding{}
	for _, f := range report.Findings {
		if f.State != doctor.OK || got[f.Check].Check == "" {
			got[f.Check] = f
		}
	}
	if (report.Worst() == doctor.Bad) != (code == exitFailed) {
		t.Errorf("exit code %d, the worst is %s", code, report.Worst())
	}
	return got
}

func predictionsOf(t *testing.T, ids ...string) []byte {
	t.Helper()
	c := arrowio.Columns{Model: "m", Version: "1", IDs: ids, K: 2, Logits: make([]float32, 2*len(ids))}
	for range ids {
		c.TS = append(c.TS, time.Now().UnixNano())
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func labelsOf(t *testing.T, ids ...string) []byte {
	t.Helper()
	now := make([]int64, len(ids))
	for i := range now {
		now[i] = time.Now().UnixNano()
	}
	value, err := arrowio.EncodeLabels("m", "1", ids, now, make([]int32, len(ids)))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestDoctor: each fault of a new deployment is found, with what mends it.
func TestDoctor(t *testing.T) {
	brokers := kafkatest.Start(t)
	file := brokerConfig(t, brokers, "  partitions: 2\ntopics: {keyed: true}\ncheckpoints: {dir: "+t.TempDir()+"}\n")
	expect := func(what string, got doctor.Finding, state doctor.State, found, do string) {
		t.Helper()
		if got.State != state || !strings.Contains(got.Found, found) || !strings.Contains(got.Do, do) {
			t.Errorf("%s: got %+v, want %s with %q and %q", what, got, state, found, do)
		}
	}
	expect("no topics", examine(t, file)["topics"], doctor.Bad, "plumbline.logits (topics.logits)", "topics create")
	run(t, "topics", "create", "-c", file)
	got := examine(t, file)
	expect("no records", got["records"], doctor.Warn, "no ", "plumbline produce")
	expect("topics", got["topics"], doctor.OK, "2 partitions", "")
	expect("no process", got["process"], doctor.Warn, "no process answers", "plumbline run")
	expect("disk", got["disk"], got["disk"].State, "checkpoints.dir", "")

	const logits, labels = "plumbline.logits", "plumbline.labels"
	send := func(topic string, partition int, value []byte) {
		t.Helper()
		kafkatest.Write(t, brokers, kafka.Message{Topic: topic, Partition: partition, Value: value, Time: time.Now()})
	}
	send(logits, 0, predictionsOf(t, "a", "b", "c"))
	send(labels, 0, labelsOf(t, "a"))
	got = examine(t, file)
	expect("good records", got["records"], doctor.OK, "1 records", "")
	expect("keys that meet", got["keys"], doctor.OK, "1 of the last 1 labels", "")
	send(labels, 1, labelsOf(t, "b", "c"))
	expect("keys that never meet", examine(t, file)["keys"], doctor.Bad,
		"3 ids are in both topics, 2 of them in different", "inputs")
	send(logits, 0, []byte(`{"id": "a", "probs": [0.1, 0.9], "x": "`+"\x1b[31m"+`"}`))
	expect("JSON", examine(t, file)["records"], doctor.Bad, "1 not_arrow", "format: json")
	for range 8 {
		send(logits, 0, predictionsOf(t, "d"))
	}
	got = examine(t, file)
	expect("one bad record", got["records"], doctor.Warn,
		"1 (10 %) of the last 10 records of predictions cannot be read: 1 not_arrow; first plumbline.logits/0/1 ", "")

	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	if got := got["positions"]; got.Check != "" {
		t.Errorf("no process ever ran, got %+v", got)
	}
	if _, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: "plumbline-shards",
		GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{logits: {{Offset: 2}}, labels: {{}}}}); err != nil {
		t.Fatal(err)
	}
	expect("all is there", examine(t, file)["positions"], doctor.OK, "not been read", "")
	if err := kafkaclient.DeleteRecords(t.Context(), client, logits, 0, 5); err != nil {
		t.Fatal(err)
	}
	expect("retention went on", examine(t, file)["positions"], doctor.Warn,
		"3 offsets left the logs of plumbline.logits before their group committed them", "plumbline state reset")
}

// guarded makes the topics on a broker where user app may do what rules say, and returns app's configuration.
func guarded(t *testing.T, rules ...string) string {
	t.Helper()
	brokers := kafkatest.StartGuarded(t, rules...)
	as := func(user string) string {
		return brokerConfig(t, brokers, "  partitions: 2\n  sasl: {username: "+user+", password_file: "+
			writeFile(t, "password", user)+"}\ntopics: {keyed: true}\ncheckpoints: {dir: "+t.TempDir()+"}\n")
	}
	run(t, "topics", "create", "-c", as("admin"))
	// The fake broker knows no groups but those that have been used.
	transport := &kafka.Transport{SASL: login.Mechanism{Username: "admin", Password: "admin"}}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}
	for group, topic := range map[string]string{"plumbline-shards": "plumbline.logits",
		"plumbline-models": "plumbline.panes"} {
		if _, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{topic: {{Offset: 0}}}}); err != nil {
			t.Fatal(err)
		}
	}
	return as("app")
}

// TestDoctorNamesGroups: every group that cannot be joined is named, also where it may be looked at.
func TestDoctorNamesGroups(t *testing.T) {
	const topics = "topic plumbline* Read,Write,DescribeConfigs"
	for _, c := range []struct {
		name  string
		rules []string
		state doctor.State
		found string
	}{
		{"both", []string{topics, "group plumbline* Read"}, doctor.OK, "may read and write what it must"},
		{"each as it is used", []string{"topic plumbline.snapshots Read,Write,DescribeConfigs", "group plumbline* Read",
			"topic plumbline.logits Read", "topic plumbline.labels Read", "topic plumbline.panes Read,Write",
			"topic plumbline.calibrators Read,Write", "topic plumbline.alerts Read,Write",
			"topic plumbline.decisions Read,Write", "topic plumbline.deadletter Write"}, doctor.OK, "may read"},
		{"shards only", []string{topics, "group plumbline-shards Read", "group plumbline* Describe"}, doctor.Bad,
			"user app may not Read the consumer groups: plumbline-models"},
		{"none", []string{topics}, doctor.Bad, "plumbline-models, plumbline-shards"},
	} {
		got := examine(t, guarded(t, c.rules...))["permissions"]
		if got.State != c.state || !strings.Contains(got.Found, c.found) {
			t.Errorf("%s: got %+v, want %s with %q", c.name, got, c.state, c.found)
		}
	}
}

// TestDoctorNamesRights: doctor says which rights run will lack, also on topics into which others are split by id, and
// how they are given; whether a topic is missing or only hidden; and where topics are there nobody need make them.
func TestDoctorNamesRights(t *testing.T) {
	const byID = "grp.plumbline.logits-by-id-2, grp.plumbline.labels-by-id-2"
	const use = "topic plumbline.* Read,Write,DescribeConfigs"
	const rw, prefixed = "topic grp.* Read,Write", "--resource-pattern-type prefixed --topic grp."
	for _, c := range []struct {
		name, keyed, more string // keyed: of who makes the topics; more: of the user's configuration
		rules             []string
		want              []string
	}{
		{"none on topics by id", "false", "", []string{use}, []string{
			"unknown: user app may not see whether they are there: " + byID,
			"bad: user app may not Create, Read, Write: " + byID, "--operation Create --operation Read", prefixed}},
		{"all", "false", "", []string{use, rw}, []string{"ok: user app may read and write what it must"}},
		{"reads only", "false", "", []string{use, "topic grp.* Read"},
			[]string{"bad: user app may not Write: " + byID, "User:app --operation Write " + prefixed}},
		{"cannot make them", "true", "", []string{use, rw}, []string{"bad: user app may not Create: " + byID,
			"; or a user who may Create makes them: plumbline topics create -c FILE"}},
		{"can make them", "true", "", []string{use, rw, "topic grp.* Create"},
			[]string{"ok: user app may read and write the topics that are there; not there yet: " + byID,
				"plumbline run makes them when it starts, or plumbline topics create -c FILE now; then ask again"}},
		{"one hidden", "false", "", []string{"topic plumbline.l* Read", "topic plumbline.c* Read,Write",
			"topic plumbline.d* Read,Write", "topic plumbline.s* Write", "topic plumbline.a* Read", rw}, []string{
			"unknown: user app may not see whether they are there: plumbline.panes\n",
			"bad: user app may not Read, Write: plumbline.panes\n", "bad: user app may not Write: plumbline.alerts\n",
			"--operation Read --operation Write --topic plumbline.panes\n"}},
		{"one missing", "false", "inputs: [{topic: rows, model: m}]\n", []string{use, rw, "topic rows Read"}, []string{
			"bad: not there: rows (inputs)", "topics create -c FILE makes them, as a user who may"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			brokers := kafkatest.StartGuarded(t, append(c.rules, "group grp* Read")...)
			as := func(user, keyed, more string) string {
				return brokerConfig(t, brokers, "  partitions: 2\n  sasl: {username: "+user+", password_file: "+
					writeFile(t, "password", user)+"}\ngroup: grp\ntopics: {keyed: "+keyed+"}\ncheckpoints: {dir: "+
					t.TempDir()+"}\n"+more)
			}
			run(t, "topics", "create", "-c", as("admin", c.keyed, ""))
			file := as("app", "false", c.more)
			_, out, stderr := runCommand(t, "doctor", "--json", "-c", file)
			var report doctor.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err, stderr)
			}
			var said strings.Builder
			for _, f := range report.Findings {
				fmt.Fprintf(&said, "%s: %s\n%s\n", f.State, f.Found, f.Do)
			}
			for _, want := range c.want {
				if !strings.Contains(said.String(), want) {
					t.Errorf("doctor does not say %q:\n%s", want, &said)
				}
			}
			if c.name != "all" {
				return
			}
			if made := run(t, "topics", "create", "-c", file); strings.Count(made, "exists") != 13 {
				t.Errorf("topics create of who may make none, where all are there: %s", made)
			}
		})
	}
}

// TestDoctorOfEmptyInputs: what produce writes is not for a topic of inputs.
func TestDoctorOfEmptyInputs(t *testing.T) {
	file := brokerConfig(t, kafkatest.Start(t), "  partitions: 2\ntopics: {labels: \"\"}\n"+
		"inputs: [{topic: rows, model: m}]\ncheckpoints: {dir: "+t.TempDir()+"}\n")
	run(t, "topics", "create", "-c", file)
	got := examine(t, file)["records"]
	if !strings.Contains(got.Found, "rows: no predictions yet") || !strings.Contains(got.Do, "inputs says") {
		t.Errorf("got %+v", got)
	}
}

// TestDoctorOfProbabilitiesAsLogits: nothing is refused and all numbers are wrong, which no other check sees.
func TestDoctorOfProbabilitiesAsLogits(t *testing.T) {
	brokers := kafkatest.Start(t)
	file := brokerConfig(t, brokers, "  partitions: 2\ntopics: {keyed: true}\ncheckpoints: {dir: "+t.TempDir()+"}\n")
	run(t, "topics", "create", "-c", file)
	for _, of := range []struct {
		logits []float32
		want   doctor.State
	}{{[]float32{.9, .1, .25, .75}, doctor.Warn}, {[]float32{0, 1, -2, 3}, ""}} {
		now := time.Now()
		value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", Version: "1", IDs: []string{"a", "b"},
			TS: []int64{now.UnixNano(), now.UnixNano()}, K: 2, Logits: of.logits})
		if err != nil {
			t.Fatal(err)
		}
		kafkatest.Write(t, brokers, kafka.Message{Topic: "plumbline.logits", Value: value, Time: now})
		got := examine(t, file)["scores"]
		if got.State != of.want || of.want != "" && !strings.Contains(got.Found+got.Do, "all 2 rows of logits are in "+
			"[0, 1] and sum to 1send probabilities as probs") {
			t.Errorf("%v: got %+v", of.logits, got)
		}
	}
}

// TestDoctorOfLocalTimes: the times of a place, sent without its zone, are read as UTC; rows of one batch hours later,
// or of several days, are not taken for that.
func TestDoctorOfLocalTimes(t *testing.T) {
	for name, of := range map[string]struct {
		after []time.Duration // of rows behind their record
		want  string
	}{
		"New York": {[]time.Duration{5 * time.Hour, 5*time.Hour + time.Second}, "ts is 5h0m0s before"},
		"India":    {[]time.Duration{-5*time.Hour - 30*time.Minute, -5*time.Hour - 29*time.Minute}, "5h30m0s after"},
		"now":      {[]time.Duration{0, time.Minute}, ""},
		"late":     {[]time.Duration{5 * time.Hour, 5*time.Hour + 10*time.Minute}, ""},
		"a replay": {[]time.Duration{48 * time.Hour, 48 * time.Hour}, ""},
		"one":      {[]time.Duration{5 * time.Hour}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := kafkatest.Start(t)
			file := brokerConfig(t, brokers,
				"  partitions: 2\ntopics: {keyed: true}\ncheckpoints: {dir: "+t.TempDir()+"}\n")
			run(t, "topics", "create", "-c", file)
			now := time.Now()
			for _, after := range of.after {
				value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", Version: "1", IDs: []string{"a"},
					TS: []int64{now.Add(-after).UnixNano()}, K: 2, Logits: []float32{1, 2}})
				if err != nil {
					t.Fatal(err)
				}
				kafkatest.Write(t, brokers, kafka.Message{Topic: "plumbline.logits", Value: value, Time: now})
			}
			got, said := examine(t, file)["zone"]
			if said != (of.want != "") || !strings.Contains(got.Found, of.want) {
				t.Errorf("got %+v, want %q", got, of.want)
			}
		})
	}
}

// TestDoctorOfLateLabels: labels that come after join.wait, as those of a nightly batch do a week later, meet no
// prediction; doctor says so, and by how much, also where nothing waits any more.
func TestDoctorOfLateLabels(t *testing.T) {
	brokers := kafkatest.Start(t)
	status := map[string]any{"ready": true, "process": map[string]any{"tasks": []any{map[string]any{
		"counts": map[string]int64{"predictions": 3000, "expired": 3000, "labels": 3000, "waiting_labels": 3000}}}}}
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	}))
	defer process.Close()
	file := brokerConfig(t, brokers, "  partitions: 2\ntopics: {keyed: true}\ncheckpoints: {dir: "+t.TempDir()+"}\n"+
		"http: {listen: \""+strings.TrimPrefix(process.URL, "http://")+"\"}\n")
	run(t, "topics", "create", "-c", file)
	send := func(topic string, value []byte) {
		t.Helper()
		kafkatest.Write(t, brokers, kafka.Message{Topic: topic, Value: value, Time: time.Now()})
	}
	at := time.Now().Add(-7 * 24 * time.Hour)
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", Version: "1", IDs: []string{"a", "b"},
		TS: []int64{at.UnixNano(), at.UnixNano()}, K: 2, Logits: []float32{1, 2, 3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	send("plumbline.logits", value)
	send("plumbline.labels", labelsOf(t, "a", "b"))
	got := examine(t, file)
	if f := got["delays"]; f.State != doctor.Bad || !strings.Contains(f.Found, "2 of 2 labels") ||
		!strings.Contains(f.Found, "up to 168h0m") || !strings.Contains(f.Do, "join.wait") {
		t.Errorf("delays: %+v", f)
	}
	if f := got["labels"]; f.State != doctor.Warn || !strings.Contains(f.Found, "0 of 3000 labels have met") ||
		!strings.Contains(f.Found, "3000 predictions waited in vain") || !strings.Contains(f.Do, "join.wait, 1h0m0s") {
		t.Errorf("labels: %+v", f)
	}
}

// TestDoctorOfKeyedGroup: a group whose shards have read the producers' topics goes on so where topics.keyed is set to
// false: nobody needs topics by id, and doctor says that each row still has a partition of its own.
func TestDoctorOfKeyedGroup(t *testing.T) {
	brokers := kafkatest.Start(t)
	file := func(keyed string) string {
		return brokerConfig(t, brokers, "  partitions: 2\ngroup: grp\ntopics: {keyed: "+keyed+"}\ncheckpoints: {dir: "+
			t.TempDir()+"}\n")
	}
	run(t, "topics", "create", "-c", file("true"))
	client := &kafka.Client{Addr: kafka.TCP(brokers...)}
	res, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: "grp-shards", GenerationID: -1,
		Topics: map[string][]kafka.OffsetCommit{"plumbline.logits": {{Partition: 1, Offset: 7}}}})
	if err != nil || res.Topics["plumbline.logits"][0].Error != nil {
		t.Fatal(err, res)
	}
	if out := run(t, "topics", "create", "-c", file("false")); strings.Contains(out, "by-id") {
		t.Errorf("topics create makes topics by id: %s", out)
	}
	got := examine(t, file("false"))
	f := got["topics"]
	if f.State != doctor.Warn || !strings.Contains(f.Found, "topics.keyed is false and has no effect") {
		t.Errorf("topics: %+v", f)
	}
	if f := got["permissions"]; strings.Contains(f.Found, "by-id") {
		t.Errorf("permissions: %+v", f)
	}
}

// TestDeadLetters: a letter is shown with where, why and how it begins; nothing of it commands the terminal.
func TestDeadLetters(t *testing.T) {
	brokers := kafkatest.Start(t)
	file := brokerConfig(t, brokers, "  partitions: 1\n")
	run(t, "topics", "create", "-c", file)
	if _, out, _ := runCommand(t, "deadletters", "-c", file); !strings.Contains(out, "no dead letters") {
		t.Errorf("got %q of an empty topic", out)
	}
	header := func(key, value string) kafka.Header {
		return kafka.Header{Key: "plumbline-" + key, Value: []byte(value)}
	}
	for _, offset := range []string{"6", "7"} {
		value := []byte("{\"a\": \"\x1b]0;x\a\"}")
		kafkatest.Write(t, brokers, kafka.Message{Topic: "plumbline.deadletter", Value: value,
			Headers: []kafka.Header{header("reason", "not_arrow"), header("detail", "begins \x1b[2J with {"),
				header("topic", "logits"), header("partition", "3"), header("offset", offset), header("rows", "0-4")}})
	}
	out := run(t, "deadletters", "-c", file, "--limit", "1")
	for _, want := range []string{"logits/3/7  not_arrow: begins \\u001b[2J with {", "rows 0-4; 15 bytes, JSON",
		`{"a": "\u001b]0;x\u0007"}`} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q", out, want)
		}
	}
	kafkatest.Write(t, brokers, kafka.Message{Topic: "plumbline.deadletter", Headers: []kafka.Header{
		header("reason", "label_range"), header("detail", "1 rows: label_range"), header("topic", "by-id"),
		header("partition", "0"), header("offset", "9"), header("source", "mine@00ff/2/3/77/0"),
		header("value-bytes", "74")}})
	made := run(t, "deadletters", "-c", file, "--limit", "1")
	for _, want := range []string{"mine/2/77  label_range: 1 rows: a label is none of the classes",
		"of its part by-id/0/9", "74 bytes, not quoted in the dead letter"} {
		if !strings.Contains(made, want) {
			t.Errorf("got %q, want %q", made, want)
		}
	}
	if strings.Contains(out, "logits/3/6") || strings.ContainsAny(out, "\x1b\a") {
		t.Errorf("got %q", out)
	}
}
