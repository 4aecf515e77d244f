// Package trainerd is the trainer process: it follows the finetune and heads topics, takes one request at a time,
// trains its head on the rows that the configuration names, and publishes the result.
//
// [Run] connects the topics with the queue and the attempts of package service, and serves metrics and health. A
// [Loader] turns a request into rows of an archive or of files (package dataset). One trainer of a name runs on a
// directory, and one on a device of a machine. The package must not know how recipes train, nor flags.
package trainerd
