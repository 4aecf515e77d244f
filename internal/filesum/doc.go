// Package filesum names the files of checkpoints by hashes of their bytes, so that equal files are kept once and damage
// is seen. A name is 32 bytes and says of which hash it is.
//
// Files of rows that wait or have joined are named by XXH3-128: all bytes of all rows go through it, and without
// instructions for it SHA-256 is a tenth of the processor time of a row. It sees damage and not forgery: who can write
// such a file can write the checkpoint that names it. Only shards write and read such files. All other names are
// SHA-256, and those of older builds.
package filesum
