// Package sinks holds where results go besides Kafka (that sink is pipeline/kafkaio's): History, a bounded memory of
// snapshots, alerts and calibrators behind the page and the API, and MetricsHandler, which shows its latest values and
// the tasks' counts to Prometheus.
//
//	h := sinks.NewHistory(sinks.HistoryConfig{})
//	h.AddSnapshot(s)                               // by whoever ran the model task
//	http.Handle("/metrics", sinks.MetricsHandler(h, tasks))
package sinks
