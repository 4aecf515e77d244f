// Package alarm holds what the alarm is configured by.
package alarm
