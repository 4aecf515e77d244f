// Package kafkaclient connects to the brokers of a configuration and reads topics from their start.
//
// It knows TLS, users and the words for brokers that do not answer and topics that are not there. It must not know what
// the records mean: callers get keys and values. Every command and the engine take their clients from here, so that all
// of them connect in the same way.
package kafkaclient
