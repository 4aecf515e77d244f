// Command plumbline tells whether a classifier's confidence is true while it is serving, and makes it true again.
//
// One file holds one subcommand; root.go lists them. Subcommands parse flags, load the configuration and connect the
// packages: no logic of the product lives here. What all of them share:
//
//   - newRootCommand: the flags -c, --json, --log-level and the list of subcommands;
//   - loadConfig, jsonOutput, newLogger: what those flags say, for a subcommand;
//   - usageErrorf: an error that exits with 2;
//   - newKafkaClient: the brokers of the configuration, with TLS and password.
package main
