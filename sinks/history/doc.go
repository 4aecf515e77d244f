// Package history keeps the latest records of this process in bounded memory, behind the page, the API and /metrics.
//
// The engine adds snapshots, alerts and calibrators as values, when they are durable. Readers ask for the latest
// snapshot of a series, for the snapshots of a time, for alerts and for refit decisions; subscribers get the records
// that are added, with a number by which they can resume; one that is far behind gets of each series the newest
// snapshot only. A repeat changes nothing, so it does not matter who else adds a record, nor how often. Models whose
// task goes to another process (Share, Leave, Return) keep what is known of their past, and have no current alert here.
//
//	h := history.New(history.Config{})
//	h.AddSnapshot(s)
//	latest, ok := h.Latest(history.SnapshotKey{Model: "digits", Version: "1", Window: "last-5000"})
//
// The package knows what makes two records one, and which is newer. It must not know Kafka, HTTP or a database: every
// decision for ever is in sinks/registry.
package history
