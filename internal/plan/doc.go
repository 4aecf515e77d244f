// Package plan says what a deployment will take, before there is one: cores, memory, disk and the volumes of the
// topics, from the rate of rows, classes, keys and the delay of labels.
//
// Processor time is a formula over constants that were measured (constants.go); memory is that of docs/operations.md,
// Sizing. Measured points that no constant was fitted on check it (plan_test.go). The package asks no running process.
package plan
