// Package registry keeps what was decided (record.Decision) in a database: bbolt in a file, or PostgreSQL.
//
// The database is a view of topics. Each entry is named by a hash of its record, and the offsets up to which the topics
// are in are written in the transaction that writes the entries, so a record that comes again changes nothing, a crash
// leaves no half, and a database that was deleted is filled anew: the same entries in the same order, whichever process
// asks.
//
//	s, err := registry.Open(registry.Options{Config: registry.Config{Store: registry.File, Path: "history.db"}})
//	f := registry.NewFiller(s, log)
//	go f.Follow(ctx, place, open, decode) // one for each partition
//	page, err := s.Query(ctx, registry.Query{Model: "digits", Limit: 100})
//
// Nothing waits for the database: a Filler reads the topics on its own, tries again while the database does not answer,
// and counts how far behind it is.
//
// The package knows what makes two decisions one, their order, and two databases. It must not know Kafka (the caller
// opens the partitions), nor HTTP: package web asks Query. Who decided, and why, is in the records.
package registry
