// Package durable writes files and makes directories that outlive a crash of the machine: their content is synced, and
// so are the names that lead to them. It knows nothing of what is in the files.
package durable
