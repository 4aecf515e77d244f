//go:build integration

package integration

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/record"
)

func init() {
	hostile["models-names"] = manyNames
	hostile["models-classes"] = wrongClasses
}

// manyNamed is a message with a labelled row of each of so many models.
func manyNamed(t *testing.T, names int) []byte {
	t.Helper()
	c := arrowio.Columns{K: 10, Slices: []arrowio.StringColumn{{Name: "model"}}}
	for i := range names {
		c.Slices[0].Values = append(c.Slices[0].Values, fmt.Sprintf("name-%05d", i))
		c.IDs = append(c.IDs, fmt.Sprint("row-", i))
		c.TS = append(c.TS, start.UnixNano())
		c.Label = append(c.Label, 1)
		c.Logits = append(c.Logits, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// listedModels is the answer of /api/v1/models.
type listedModels struct {
	Models []struct {
		Model    string `json:"model"`
		Versions []struct {
			Version string        `json:"version"`
			Classes int           `json:"classes"`
			Settled bool          `json:"settled"`
			Others  map[int]int64 `json:"others"`
		} `json:"versions"`
	} `json:"models"`
	Total, Shown int
}

// manyNames sends 10,000 model names in one message, to every partition, between the halves of a good stream.
func manyNames(t *testing.T, a *attack) {
	const names, taken = 10_000, 300 // of ten minutes
	value := manyNamed(t, names)
	a.Input = fmt.Sprintf("a message of %d KB with 10,000 names of models, on each of %d partitions", len(value)>>10,
		partitions)
	a.Before = "2.6 GB; the good model was not on the page, and its calibrator was 404"
	want := goodHash(t)
	s := configure(t, oneDay)
	p := run(t, s)
	good := goodStream(t, s)
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	values := make([][]byte, partitions)
	for i := range values {
		values[i] = value
	}
	s.attackWith(t, "logits", values...)
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	const refused = (names - taken) * partitions
	p.wait(2*time.Minute, "get behind the attack", func() bool {
		st, err := p.status()
		return err == nil && st.Drained && st.Counts.Joined >= goodRows && st.Counts.Rejected["models"] >= refused
	})
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	a.exact(t, p, want)
	a.RSS, a.Restart = p.peak(), p.restarts()
	const most = 400 << 20
	if a.RSS > most || a.Restart > 0 {
		t.Errorf("resident memory: %d MB, want at most %d; tasks ended %d times", a.RSS>>20, most>>20, a.Restart)
	}
	var calibrator struct{ Model, Version string }
	p.mustGet("/api/v1/models/good/calibrator", &calibrator)
	if calibrator.Model != "good" || calibrator.Version != "1" {
		t.Errorf("the good model's calibrator: %+v", calibrator)
	}
	var named struct{ Model string }
	p.mustGet("/api/v1/models/name-00000/calibrator", &named)
	var list listedModels
	p.mustGet("/api/v1/models", &list)
	found := false
	for _, m := range list.Models {
		found = found || m.Model == "good" && m.Versions[0].Classes == 10
	}
	if !found || list.Total < taken {
		t.Errorf("%d versions, %d shown, the good model among them: %v", list.Total, list.Shown, found)
	}
	p.stop()
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += letterBytes(t, &m)
	}
	a.Note = fmt.Sprintf("%d versions taken, %d rows refused", list.Total, refused)
}

// wrongClasses sends messages of another K before the first of a good model, and among its first, then refuses the good
// K by an order.
func wrongClasses(t *testing.T, a *attack) {
	a.Input = "the first message of a version in each partition has K = 5, its model 10"
	a.Before = "the model had K = 5 for ever; its own rows were refused"
	want := goodHash(t)
	s := configureEdited(t, oneDay, "http:\n", "http:\n  control: true\n")
	p := run(t, s)
	good := goodStream(t, s)
	message := func(k, n int, ts time.Time) []byte {
		c := arrowio.Columns{Model: "good", Version: "1", K: k, Logits: make([]float32, n*k)}
		for i := range n {
			c.IDs = append(c.IDs, fmt.Sprint("attack-", k, i))
			c.TS = append(c.TS, ts.UnixNano())
			c.Logits[i*k+1] = 5
		}
		value, err := arrowio.EncodePredictions(c)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	const rows = 500
	values := make([][]byte, partitions)
	for i := range values {
		values[i] = message(5, rows, start)
	}
	s.attackWith(t, "logits", values...)
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	s.attackWith(t, "logits", values...) // now K stands
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	p.wait(2*time.Minute, "get behind the attack", func() bool {
		st, err := p.status()
		return err == nil && st.Drained && st.Counts.Joined >= goodRows &&
			st.Counts.Rejected["classes"] >= rows*partitions
	})
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	a.exact(t, p, want)
	a.RSS, a.Restart = p.peak(), p.restarts()
	var list listedModels
	p.mustGet("/api/v1/models?"+url.Values{"search": {"good"}}.Encode(), &list)
	if v := list.Models[0].Versions[0]; v.Classes != 10 || !v.Settled || v.Others[5] == 0 {
		t.Errorf("the version is %+v", v)
	}
	orderClasses(t, p, s, func() {
		for i := range values {
			values[i] = message(10, rows, start.Add(time.Minute))
		}
		s.attackWith(t, "logits", values...)
	}, 2*rows*partitions)
	p.stop()
	details := map[string]bool{}
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += letterBytes(t, &m)
		for _, h := range m.Headers {
			if h.Key == "plumbline-detail" {
				details[string(h.Value)] = true
			}
		}
	}
	for _, want := range []string{"K = 5, expected K = 10 as ", "K = 10, expected K = 5 as ordered by "} {
		found := false
		for d := range details {
			found = found || strings.Contains(d, want)
		}
		if !found {
			t.Errorf("no dead letter says %q: %v", want, details)
		}
	}
	a.Note = fmt.Sprintf("%d predictions of K = 5 dropped", list.Models[0].Versions[0].Others[5])
}

// orderClasses gives the good model 5 classes by an order, which all shards follow: they refuse messages of 10.
func orderClasses(t *testing.T, p *process, s settings, send func(), refused int64) {
	t.Helper()
	runOK(t, "models", "set-classes", "good", "1", "5", "--why", "an attacker's", "-c", s.file)
	p.wait(time.Minute, "follow an order", func() bool {
		var decided struct{ Calibrators []record.Calibrator }
		err := p.get("/api/v1/calibrators?model=good", &decided)
		return err == nil && slices.ContainsFunc(decided.Calibrators, func(c record.Calibrator) bool {
			return c.Classes == 5 && c.By != ""
		})
	})
	send()
	p.wait(time.Minute, "refuse what was ordered", func() bool {
		st, err := p.status()
		return err == nil && st.Counts.Rejected["classes"] >= refused
	})
}
