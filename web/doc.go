// Package web serves the page, the HTTP API and the health endpoints. All of it is read-only: GET and HEAD.
//
// What comes in is a [sinks.History] that the model task fills, a status function and a metrics handler; what goes out
// is the JSON of docs/http.md. The page at / is plain HTML, CSS and ES modules, embedded, and a client of that API
// only.
//
//	srv := web.Server(":9090", web.New(web.Deps{History: history, Metrics: promhttp.Handler()}))
//	err := srv.ListenAndServe()
package web
