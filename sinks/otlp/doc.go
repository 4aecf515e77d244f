// Package otlp sends spans to an OpenTelemetry collector, by OTLP over HTTP in protobuf.
//
// Spans wait in a bounded queue. A collector that is away, slow or refuses costs spans, which are counted, and nothing
// else: nobody waits for it. The standard environment variables give what the configuration has no key for:
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, and OTEL_EXPORTER_OTLP_HEADERS with secrets for the collector.
//
// The package knows the protocol. It must not know what a span means.
package otlp
