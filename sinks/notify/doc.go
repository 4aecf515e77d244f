// Package notify tells people of alerts: it reads the alerts topic and sends what fires and what resolved to
// Alertmanagers (API v2) and to webhooks (signed as Standard Webhooks has it).
//
// The topic is the queue. Alertmanagers are told the whole current state again and again, as Prometheus does it, so
// nothing is lost when one is away, and several are told the same. A webhook is told every change once at least: its
// offset is committed when it has answered, and a repeat has the same webhook-id.
package notify
