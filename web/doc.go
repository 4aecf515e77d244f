// Package web serves the page, the HTTP API and the health endpoints.
//
// Answers come from the latest records in memory (sinks/history), the database of decisions (sinks/registry, as Past),
// and functions for the status and the metrics; they are the JSON of docs/http.md. The page at / is plain HTML, CSS and
// ES modules, embedded, and a client of that API only. Everything is read-only but for what Deps.Control turns on:
// pauses, and orders about calibrators and heads, which go to the engine.
//
//	srv := web.Server(":9090", web.New(web.Deps{History: history, Metrics: promhttp.Handler()}), errs)
//	err := srv.ListenAndServe()
//
// The package knows HTTP and the shape of records. It must not know Kafka, how a number is computed, or what an order
// does. Package calibrate answers model servers.
package web
