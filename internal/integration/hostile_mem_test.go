//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

func init() { hostile["mem-keys"] = manyKeys }

// keysConfig has the default windows; oneDay has one, of no memory to speak of.
const keysConfig = `
event_time: {pane: 1m, idle_timeout: 0s}
slices: {columns: [cohort], max_keys: 100}
`

// keptCohorts is max_keys of keysConfig.
const keptCohorts = 100

// manyKeys sends a version with 100 cohorts, and beside each of their rows one of a cohort that never was before, at
// last twenty, between the halves of a good stream.
func manyKeys(t *testing.T, a *attack) {
	const messages, flood = 30, 4 // each of all partitions, 20 s apart; the last ones are the flood
	const rows = keptCohorts * (messages*2 + flood*19)
	a.Input = fmt.Sprintf("%d rows of 100 cohorts and of %d that have one each", rows, rows-keptCohorts*messages)
	a.Before = "24 keys took 1.5 GB"
	alone := configure(t, keysConfig)
	p := run(t, alone)
	kafkatest.Write(t, brokers, goodStream(t, alone)...)
	p.drain(goodRows, goodRows)
	want := p.hashOf("good")
	p.stop()

	s := configure(t, keysConfig)
	p = run(t, s)
	good := goodStream(t, s)
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	var attack []kafka.Message
	for i := range messages * partitions {
		at, once := start.Add(time.Duration(i/partitions)*20*time.Second), 1
		if i/partitions >= messages-flood {
			once = 20
		}
		attack = append(attack, kafka.Message{Topic: s.topic("logits"), Partition: i % partitions, Time: at,
			Value: cohortRows(t, at, i, once)})
	}
	kafkatest.Write(t, brokers, attack...)
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	p.drain(goodRows+rows, goodRows)
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	a.exact(t, p, want)
	a.RSS, a.Restart = p.peak(), p.restarts()
	const most = 400 << 20
	if a.RSS > most || a.Restart > 0 {
		t.Errorf("resident memory: %d MB, want at most %d; tasks ended %d times", a.RSS>>20, most>>20, a.Restart)
	}
	p.stop()
	have, lasting := map[string]bool{}, 0
	for _, snap := range latest(t, s) {
		if strings.HasPrefix(snap.Slice, "cohort=") && !have[snap.Slice] {
			have[snap.Slice] = true
			if strings.HasPrefix(snap.Slice, "cohort=kept-") {
				lasting++
			}
		}
	}
	a.Note = "the 100 cohorts and ~other have statistics"
	if lasting < keptCohorts || len(have) > keptCohorts+1 {
		t.Errorf("%d of %d cohorts that last have snapshots, and %d others", lasting, keptCohorts, len(have)-lasting)
	}
	if n := len(kafkatest.ReadAll(t, brokers, s.topic("deadletter"))); n > 0 {
		t.Errorf("%d dead letters of good rows", n)
	}
}

// cohortRows is message i, with labelled rows: one of each cohort of its partition, each with so many of cohorts that
// have no other row.
func cohortRows(t *testing.T, at time.Time, i, once int) []byte {
	t.Helper()
	c := arrowio.Columns{Model: "many", Version: "1", K: 10, Slices: []arrowio.StringColumn{{Name: "cohort"}}}
	for j := range keptCohorts / partitions * (1 + once) {
		cohort := fmt.Sprintf("kept-%d-%d", i%partitions, j/(1+once))
		if j%(1+once) > 0 {
			cohort = fmt.Sprintf("once-%d-%d", i, j)
		}
		c.Slices[0].Values = append(c.Slices[0].Values, cohort)
		c.IDs = append(c.IDs, fmt.Sprint("many-", i, "-", j))
		c.TS = append(c.TS, at.UnixNano())
		c.Label = append(c.Label, int32(j%10))
		for class := range 10 {
			c.Logits = append(c.Logits, float32((j*7+class*3+i)%11)/2)
		}
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
