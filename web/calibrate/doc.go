// Package calibrate serves calibrators to model servers over HTTP.
//
//	GET  …/{model}/calibrator   the calibrator in force
//	POST …/{model}/calibrate    rows in, calibrated rows out, as JSON or Arrow
//
// The first is for servers that apply the calibrator themselves: an ETag and a long poll let thousands follow it
// cheaply. The second is for servers that hold no calibrator.
//
// A Source says which calibrator is in force; the engine's tail of the calibrators topic is one. Until everything that
// was published before is known, nothing is answered, as an answer could take servers back to the identity. Rows whose
// ids are in a canary's share are calibrated by the canary, as on the calibrated stream.
//
// The package knows HTTP, the two bodies and their bounds. It must not know how a calibrator is fitted, when one is
// published, or where it comes from. docs/http.md describes the requests. Package web mounts its Handler.
package calibrate
