// Package proving is the section heads of the configuration: how a new head proves itself in the stream. Shards run
// heads as shadows by its first keys (package shadow), model tasks judge them by the others (package finetune), so the
// section belongs to neither. It knows no head and no stream.
package proving
