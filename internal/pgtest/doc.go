// Package pgtest starts a PostgreSQL of its own for tests, from the programs that are installed (Debian: postgresql).
// Test files only. A test that needs one is skipped where there is none.
//
//	dsn := pgtest.Start(t).Database(t)
package pgtest
