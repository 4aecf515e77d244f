// Package integration drives the real binary against a real Apache Kafka broker: what is produced, streamed, crashed,
// damaged and replayed must give the numbers of the offline evaluation. Everything is in its tests, behind the build
// tag integration:
//
//	go test -tags integration -count=1 -v ./internal/integration/
//
// PLUMBLINE_KAFKA=host:port names a broker that may be used; unset, deploy/kafka/kafka.sh starts one and stops it.
// PLUMBLINE_KAFKA_SECURE=host:port,file names its listener with TLS and SASL, and the authority to trust.
// PLUMBLINE_BIN names a binary; unset, cmd/plumbline is built. PLUMBLINE_DATA names the folder of real data sets;
// unset, ../shared/data beside the repository (internal/realdata). PLUMBLINE_DOCS=1
// rewrites the tables in bench/results, PLUMBLINE_BENCH=1 turns the throughput measurement on,
// PLUMBLINE_RECOVERY=1 that of the recovery after kill -9, PLUMBLINE_SOAK_MINUTES=30 the soak of so many minutes.
package integration
