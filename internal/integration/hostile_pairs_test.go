//go:build integration

package integration

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
)

func init() { hostile["pairs-killed"] = pairsKilled }

// pairCounts are what became of requests and responses.
type pairCounts struct {
	Paired    int64            `json:"paired"`
	Unmet     map[string]int64 `json:"requests_unmet"`
	Alone     map[string]int64 `json:"responses_alone"`
	Requests  int64            `json:"waiting_requests"`
	Responses int64            `json:"waiting_responses"`
}

func (p *process) pairs() (c pairCounts) {
	var answer struct {
		Process struct{ Counts pairCounts }
	}
	p.mustGet("/api/v1/status", &answer)
	return answer.Process.Counts
}

func (p *process) metrics() string {
	p.t.Helper()
	res, err := http.Get("http://" + p.s.listen + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(b), "plumbline_rows_unaccounted{") {
		p.t.Fatalf("/metrics: %d bytes, %v", len(b), err)
	}
	return string(b)
}

// pairsKilled: requests and responses wait for each other when the process is killed. The numbers are those of whole
// rows, every cohort is that of its requests, and a replay ends with the same state.
func pairsKilled(t *testing.T, a *attack) {
	a.Input = "kill -9 while requests and responses of KServe wait for each other"
	a.Before = "responses alone were read: no features, no cohorts"
	text, err := os.ReadFile(filepath.Join(root, "examples", "config", "kserve-requests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := setUp(t, string(text)+"\nevent_time: {idle_timeout: 6s}\n")
	runOK(t, "topics", "create", "-c", s.file)
	loaded := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	data := &inputData{loaded.K, loaded.Scores, loaded.Label}
	var responses, labels []kafka.Message
	for from := 0; from < setupRows; from += inputRows {
		to := min(from+inputRows, setupRows)
		value, headers := inputRecords["kserve predictions"](data, from, to)
		responses = append(responses, kafka.Message{Value: value, Headers: headers, Time: rowTime(from)})
		value, _ = inputRecords["json labels"](data, from, to)
		labels = append(labels, kafka.Message{Value: value, Time: rowTime(from)})
	}
	events := withRequests(data, responses)
	send := func(topic string, ms []kafka.Message) {
		for i := range ms {
			ms[i].Topic, ms[i].Partition = s.topic(topic), i%2
		}
		kafkatest.Write(t, brokers, ms...)
	}
	p := run(t, s)
	const half = 5*20 + 7 // in the middle of those that come late
	send("serving.events", events[:half])
	var before pairCounts
	p.wait(30*time.Second, "hold requests and responses", func() bool {
		before = p.pairs()
		return before.Paired > 100 && before.Requests > 0 && before.Responses > 0
	})
	p.kill()
	p = run(t, s)
	send("serving.events", events[half:])
	send("orders.outcomes", labels)
	p.wait(2*time.Minute, "count the rows", func() bool { return setUpDone(t, s) })
	p.wait(time.Minute, "be drained", func() bool { st, err := p.status(); return err == nil && st.Drained })
	var want record.Metrics
	runJSON(t, &want, "eval", setupFile(t), "--json", "--bins", "15")
	compareSetUp(t, s, &want)
	compareRegions(t, s)
	c := p.pairs()
	t.Logf("at the kill %+v, at the end %+v", before, c)
	never := 0 // rows whose request never comes
	for i := range setupRows {
		if regionOf(i) == "" {
			never++
		}
	}
	if c.Paired != int64(setupRows-never) || c.Alone["waited"] != int64(never) || c.Responses != 0 {
		t.Errorf("%+v, want %d pairs and %d responses alone", c, setupRows-never, never)
	}
	for _, line := range strings.Split(p.metrics(), "\n") {
		if strings.HasPrefix(line, "plumbline_rows_unaccounted{") && !strings.HasSuffix(line, " 0") {
			t.Error(line)
		}
	}
	hash := p.hashOf("digits")
	p.stop()
	if again := replayed(t, s, binary)["digits"]; again != hash {
		t.Errorf("replay ends with %s, live %s", again, hash)
	}
	a.Exact = !t.Failed()
	a.Note = "1,000 rows, replay equal; "
}
