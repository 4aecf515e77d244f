// Package drift holds what the statistics of predictions before their labels are configured by.
package drift
