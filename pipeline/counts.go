package pipeline

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Counts counts what became of the rows and messages of a shard, by name. It is part of the checkpoint, so a
// row is counted once whatever happens. Reads may come from another goroutine.
type Counts struct {
	mu    sync.Mutex
	n     map[string]int64
	names map[[2]string]string // by name and reason: names are put together once, not for each message
}

// The names of the counts; those with a reason are "name:reason".
const (
	CountMessages    = "messages"     // messages taken, by input
	CountRows        = "rows"         // rows decoded, by input
	CountPredictions = "predictions"  // good rows of the logits topic
	CountInline      = "inline"       // predictions that came with their label
	CountUnlabelled  = "unlabelled"   // predictions that no label can find: without an id
	CountLabels      = "labels"       // good rows of the labels topic
	CountJoined      = "joined"       // predictions that met their label
	CountMet         = "met"          // labels that met a prediction, or one that they did not fit
	CountCorrections = "corrections"  // further labels of predictions that have joined; they change nothing
	CountLabelled    = "labelled"     // rows that entered the labelled statistics, inline labels included
	CountRejected    = "rejected"     // rows that take no part, by reason
	CountDeadLetters = "dead_letters" // messages to the dead-letter topic, by reason
	CountLate        = "late"         // rows that came after their pane was emitted
	CountExpired     = "expired"      // predictions that waited longer than join.wait
	CountOrphans     = "orphans"      // labels whose prediction did not come in time
	CountEvicted     = "evicted"      // waiting rows pushed out of the full buffer
	CountDuplicates  = "duplicates"   // predictions of an id that waits, or that is remembered
	CountPooled      = "pooled"       // predictions and labelled rows of slice values that a shard had no slot for
	CountControl     = "control"      // watermark records
	// Requests and responses that come apart: requests that met a response, requests that met none and responses that
	// went on alone, both by reason, and those that wait now.
	CountPaired           = "paired"
	CountPairedEvicted    = "paired_evicted" // of the paired: pushed out before further responses could come
	CountRequestsUnmet    = "requests_unmet"
	CountResponsesAlone   = "responses_alone"
	CountWaitingRequests  = "waiting_requests"
	CountWaitingResponses = "waiting_responses"
	// Rows of a wrong clock by model and version: late; rejected because their time is ahead.
	CountLateByModel  = "late_by_model"
	CountAheadByModel = "ahead_by_model"

	CountEvictedLabels = "evicted_labels" // labels among the evicted
	// labels among the rejected that were good rows but did not fit their prediction.
	CountRejectedJoins = "rejected_joins"
	CountWaiting       = "waiting"        // predictions that wait now
	CountWaitingLabels = "waiting_labels" // labels that wait now
	// Waiting rows that moved between shards when their number changed: came less went; the sum over all shards is 0.
	CountMoved       = "moved"
	CountMovedLabels = "moved_labels"
	CountMovedHalves = "moved_halves" // requests and responses
)

// The names of outputs that are not written.
const (
	CountLettersSkipped = "dead_letters_skipped" // dead letters over the bound of a minute, by reason
	CountLettersRefused = "dead_letters_refused" // dead letters that the brokers have refused for good, by reason
	CountRefused        = "outputs_refused"      // other outputs that the brokers have refused for good, by stream
)

// Counts of what became of labelled rows at the archive.
const (
	// Came while no archive was configured; present only while one is.
	CountArchiveOff       = "archive_off"
	CountArchived         = "archived"               // went into the archive
	CountArchiveSkipped   = "archive_skipped"        // the archive does not take, by reason
	CountArchiveDropped   = "archive_dropped"        // lost to a full disk, where that is the policy
	CountArchivePublished = "archive_published"      // of those archived: in a file of the directory
	CountArchiveMemory    = "archive_waiting:memory" // wait for their file to be complete, or published: in memory
	CountArchiveDisk      = "archive_waiting:disk"   // in the work directory
	CountArchiveLost      = "archive_lost"           // waited when the archive was turned off, or were damaged on disk
	archiveWaiting        = "archive_waiting"        // with the place as reason
)

// NewCounts returns counts that are all zero.
func NewCounts() *Counts { return &Counts{n: map[string]int64{}, names: map[[2]string]string{}} }

// Add adds d to a count.
func (c *Counts) Add(name string, d int64) {
	c.mu.Lock()
	c.n[name] += d
	c.mu.Unlock()
}

// Move takes d from one count and adds it to another in one step, so that readers always see the same sum.
func (c *Counts) Move(from, to string, d int64) {
	c.mu.Lock()
	c.n[from] -= d
	c.n[to] += d
	c.mu.Unlock()
}

// Set sets a count.
func (c *Counts) Set(name string, n int64) {
	c.mu.Lock()
	c.n[name] = n
	c.mu.Unlock()
}

// AddReason adds d to a count by reason.
func (c *Counts) AddReason(name, reason string, d int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok := c.names[[2]string{name, reason}]
	if !ok {
		key = name + ":" + reason
		c.names[[2]string{strings.Clone(name), strings.Clone(reason)}] = key
	}
	c.n[key] += d
}

// maxByModel bounds the model versions that a count names; the others are pooled under one name.
const (
	maxByModel  = 50
	otherModels = "~other"
)

// AddModels adds to a count by model version.
func (c *Counts) AddModels(name string, by map[arrowio.ModelKey]int64) {
	if len(by) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	named := -1
	for _, m := range slices.SortedFunc(maps.Keys(by), arrowio.ModelKey.Compare) {
		key := name + ":" + m.Model + "/" + m.Version
		if _, ok := c.n[key]; !ok {
			if named < 0 {
				named = 0
				for k := range c.n {
					if strings.HasPrefix(k, name+":") {
						named++
					}
				}
			}
			if named++; named > maxByModel || len(key) > maxCountName {
				key = name + ":" + otherModels
			}
		}
		c.n[key] += by[m]
	}
}

// maxCountName bounds the names of counts.
const maxCountName = 1 << 10

// All returns a copy.
func (c *Counts) All() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// CheckpointSection is the counts' part of a checkpoint.
func (c *Counts) CheckpointSection() Section { return Section{Name: "counts", Version: 1, State: c} }

// AppendState appends uvarint n, in ascending order of names string name (`name` or `name:reason`), varint count.
func (c *Counts) AppendState(dst []byte) ([]byte, error) {
	n := c.All()
	dst = binenc.AppendUvarint(dst, uint64(len(n)))
	for _, k := range slices.Sorted(maps.Keys(n)) {
		dst = binenc.AppendString(dst, k)
		dst = binenc.AppendVarint(dst, n[k])
	}
	return dst, nil
}

// RestoreState implements State.
func (c *Counts) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	n := map[string]int64{}
	for range r.Count(2, 1<<16) {
		k := r.String(maxCountName)
		n[k] = r.Varint()
	}
	withoutArchive(n)
	c.mu.Lock()
	c.n = n
	c.mu.Unlock()
	return r.Err()
}
