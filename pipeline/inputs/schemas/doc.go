// Package schemas asks a schema registry, as Confluent's, Karapace and Apicurio's have the interface, for the schemas
// that records name by number.
//
// A number's schema never changes, so each is asked for once. What is not there is asked for again after a minute. An
// answer has bounds in time and bytes; whoever needs a schema that cannot be had now waits, since the record has no
// fault. The package knows HTTP and references between schemas. It must not know what schemas say.
package schemas
