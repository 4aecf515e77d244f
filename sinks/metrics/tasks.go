package metrics

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline"
)

// waitingKinds are the counts that fall again.
var waitingKinds = map[string]string{pipeline.CountWaiting: "predictions", pipeline.CountWaitingLabels: "labels",
	pipeline.CountWaitingRequests: "requests", pipeline.CountWaitingResponses: "responses"}

// archiveKinds are the rows that wait for their file in the archive.
var archiveKinds = map[string]string{pipeline.CountArchiveMemory: "memory", pipeline.CountArchiveDisk: "disk"}

func collectTask(ch chan<- prometheus.Metric, t *pipeline.TaskStatus) {
	p := strconv.Itoa(t.Partition)
	for name, n := range t.Counts {
		if kind, ok := waitingKinds[name]; ok {
			gauge(ch, descWaiting, float64(n), p, kind)
			continue
		}
		if kind, ok := archiveKinds[name]; ok {
			gauge(ch, descArchiveWaits, float64(n), p, kind)
			continue
		}
		event, reason, _ := strings.Cut(name, ":")
		ch <- prometheus.MustNewConstMetric(descCount, prometheus.CounterValue, float64(n), t.Task, p, event, reason)
	}
	if t.Task == "shard" {
		rows, _ := pipeline.Unaccounted(t.Counts)
		gauge(ch, descUnaccount, float64(rows), p)
	}
	if t.WM != pipeline.NoTime && t.WM != 0 {
		gauge(ch, descWatermark, float64(t.WM)/1e9, t.Task, p)
	}
	up := 0.0
	if t.CaughtUp {
		up = 1
	}
	gauge(ch, descCaughtUp, up, t.Task, p)
	for in, o := range t.Next {
		gauge(ch, descOffset, float64(o), t.Task, p, in)
	}
}

// savedTimes knows when each task was last seen to have everything in a checkpoint. A task shows a new status when a
// checkpoint of that moment is durable, or when there was nothing to save; so the age of a status is how much work a
// crash would repeat, and one that grows means that checkpoints do not get done. To a scrape interval.
type savedTimes struct {
	mu   sync.Mutex
	seen map[taskKey]savedStatus
}

type taskKey struct {
	task      string
	partition int
}

type savedStatus struct {
	status *pipeline.TaskStatus
	at     time.Time
}

// see notes the statuses that are new at now, and forgets the tasks that are gone.
func (s *savedTimes) see(tasks []*pipeline.TaskStatus, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[taskKey]savedStatus, len(tasks))
	for _, t := range tasks {
		k := taskKey{t.Task, t.Partition}
		if old, ok := s.seen[k]; ok && old.status == t {
			seen[k] = old
			continue
		}
		seen[k] = savedStatus{t, now}
	}
	s.seen = seen
}

// of is when t's latest status was first seen.
func (s *savedTimes) of(t *pipeline.TaskStatus) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[taskKey{t.Task, t.Partition}].at
}
