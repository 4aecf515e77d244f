// Package parquet reads and writes the columns of Parquet files as Arrow records. It alone imports the Parquet library.
package parquet
