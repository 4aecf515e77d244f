package plan

// The constants of processor time, in ns. They were fitted on the points of testdata/points.csv that are marked so, and
// are checked on the others. Command:
//
//	make bench-e2e E2E="-set full -clients plumbline -rounds 1 -only '^K(2|10|100|1000)-.*-keys1(00)?-batch1'"
//
// Two cores of an Intel Xeon with AVX-512, for the points without slices shared by 35 processes.
const (
	inlineRow   = 571.0  // a prediction with its label
	firstClass  = 12.6   // for each of the first hundred classes, beside otherClass
	otherClass  = 4.33   // for each class
	joinedRow   = 851.0  // a label that comes apart from its prediction
	joinedClass = 4.52   // the same, for each class
	pairTime    = 20.5e3 // a message of predictions and one of labels, however many rows they have

	keyPaneClass = 8.5e3 // for each class, where a key's pane has fullPane rows or more
	fullPane     = 2000

	// By the points of testdata/steady.csv, of processes whose rows come as they happen. Command:
	//
	//	make bench-e2e E2E="-steady 10/2000/20/1,1000/500/0/1,…"
	askTime      = 1.4e6 // in a second, of a topic of a partition that is read, however little comes
	splitTime    = .75e6 // a message that is split by id, written and read again
	mostAnswers  = 25    // of brokers in a second and partition: above it messages come together
	splitRow     = 900.0 // a row of such messages
	splitClass   = 5.4   // the same, for each class
	sampledClass = 48.0  // for each class of a sampled row, each time that estimates are made of it
	saveTime     = 6e6   // a checkpoint of a task
	encodedByte  = 3.0   // of it, each byte

	// By: go test ./operators/join -run - -bench 'BenchmarkJoin/(memory|disk)$'.
	diskRow = 1200.0 // a row that waits on disk, more than in memory
)

// keyPane is the processor time of evaluating a key's pane (windows, alarm, snapshots), by its rows: from 1,000 on by
// the points with slices, for a row by replays (plumbline replay FILE --event-rate 100, 10,000 slices), between by
// testdata/steady.csv.
var keyPane = curve{{1, 1.4e6}, {100, 3e6}, {1000, 15e6}, {100 * fullPane, 15e6}}

// Bytes of a row in messages of 1,000 rows, from the volumes of the same points: 4 bytes a class, id, time.
const (
	predictionBytes = 30.0
	labelBytes      = 28.0
)

// Bytes of memory: docs/operations.md, Sizing, with the tests that measure them.
const (
	processBytes  = 40e6 // without a task
	garbage       = 2.0  // resident by in use, at GOGC=100
	waitingMemory = 120.0
	waitingIndex  = 28.0 // of a row on disk
	waitingDisk   = 40.0
	rememberBytes = 50.0
	outputBytes   = 32 << 20 // of a shard, before a checkpoint
	taskBytes     = 3.8e6    // of a model task
	keyBytes      = 0.04e6
	keyClass      = 100.0
	recentBytes   = 25.0 // of a label pane of the latest recentRows
	recentRows    = 5000
	squareBytes   = 45.0 // of a version, for each pair of classes
	squareClasses = 128
	sampledBytes  = 90.0
	bucketBytes   = 300.0
	newRows       = 1.2 // of a bucket of a time window that labels reach: rows since it was packed
	pageKeyBytes  = 1.7e6
	pageKeys      = 256
	snapshotBytes = 13e3
	stillOpen     = 2 // panes of model versions for which a label pane is open after its end
)

// cellBytes and cellMessage are of a cell of statistics by its rows, in memory and in a pane message, at K = 10.
var (
	cellBytes   = curve{{10, 12e3}, {41, 27e3}, {100, 45e3}, {820, 150e3}, {10_000, 1e6}}
	cellMessage = curve{{10, 1.5e3}, {100, 5.7e3}, {10_000, 165e3}}
)

// buckets are KB of a bucket of a window by its rows, for some numbers of classes (TestBucketTable of operators/model).
var buckets = []struct {
	classes float64
	kb      curve
}{
	{2, curve{{10, .6}, {100, 1.4}, {1000, 3.2}, {10_000, 4.5}, {100_000, 6.1}}},
	{10, curve{{10, .9}, {100, 2.3}, {1000, 6.4}, {10_000, 7.9}, {100_000, 9.5}}},
	{100, curve{{10, 1.8}, {100, 3.8}, {1000, 14.3}, {10_000, 22.5}, {100_000, 25.9}}},
	{1000, curve{{10, 8.2}, {100, 10.8}, {1000, 21.8}, {10_000, 74}, {100_000, 164}}},
}

// spare is what a deployment needs beyond its load: to catch up with an hour's outage in an hour, and for peaks.
const spare = 2.0
