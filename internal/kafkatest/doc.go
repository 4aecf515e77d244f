// Package kafkatest starts an in-process Kafka for unit tests: kfake, which speaks the protocol over loopback TCP and
// needs neither Java nor Docker. Test files only; what must hold on a real broker is tested in internal/integration.
//
//	brokers := kafkatest.Start(t)
//	kafkatest.CreateTopics(t, brokers, 4, "plumbline.logits", "plumbline.labels")
package kafkatest
