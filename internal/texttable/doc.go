// Package texttable writes what the commands print of metrics: tables with aligned columns, and numbers with as many
// digits as their metric deserves. What is not defined is "-". The package knows no command.
package texttable
