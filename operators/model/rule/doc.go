// Package rule holds what a rule is configured by.
package rule
