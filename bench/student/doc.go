// Package student has intervals by Student's t of what a benchmark measured several times.
//
// Numbers come from the commands of bench, and their means and half-widths go into the tables.
package student
