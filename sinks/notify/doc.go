// Package notify notifies people of alerts: it reads the alerts topic and sends what fires and what is resolved to
// Alertmanagers (API v2) and to webhooks (signed as Standard Webhooks has it).
//
// The topic is the queue. An Alertmanager gets the whole current state again and again, as Prometheus does it, so
// nothing is lost while one is away, and several get the same. A webhook gets every change at least once: its offset is
// committed when it has answered, and a repeat has the same webhook-id.
//
// The package knows alert records, both receivers' protocols, and how long to try. It must not know when an alert fires
// or what inhibits it (operators/model/alert decides), nor how partitions are shared: the engine runs one Notifier for
// each partition that the process has.
package notify
