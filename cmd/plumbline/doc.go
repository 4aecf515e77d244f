// Command plumbline checks in production whether a classifier's confidence is true, and recalibrates it.
//
// One file holds one subcommand with those below it; root.go lists them, and help/ has their long texts. Subcommands
// parse flags, load the configuration, call a package and print: no logic of the product lives here. What all of them
// share:
//
//   - newRootCommand: the flags -c, --json, --log-level, --log-format and the list of subcommands;
//   - setup, loadConfig, newLogger, jsonOutput: what those flags say, for a subcommand;
//   - printJSON, printReport: a result as --json says;
//   - cli.Usagef: an error that exits with 2.
package main
