// Package ruletest runs cases of rules: rows in, alerts expected.
//
// [Read] reads a file of cases strictly, with the line of each key for messages. A case has a configuration, rows that
// are made, given as sums of panes or read from a file, and the alerts that must come or must not. [Suite.Run] plays it
// through the engine's replay, in this process and in event time, and a [Result] says what came in the form of a diff.
// The package must not know what rules compute; `plumbline test rules` prints the results.
package ruletest
