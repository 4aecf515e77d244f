package refit

// rowsPerParameter is the number of rows that auto requires for each parameter of a method. With fewer rows the fit
// follows noise. Its test would then take its share of the level α from the other candidates without use.
const rowsPerParameter = 20

// Smallest numbers of rows for methods whose number of parameters says little. Isotonic regression has as many steps as
// the rows allow; the ETS mixture gains almost nothing on a few hundred rows.
const (
	mixtureRows  = 500
	isotonicRows = 2000
	// maxMatrix limits K for the K×K map of auto, because its fit takes K³ time.
	maxMatrix = 32
)

// candidateMethods returns the methods that one run fits, in a fixed order. auto takes one method of each kind that n
// rows of k classes can support. Each candidate is tested at α/m, so more candidates cost power; auto therefore takes
// no two methods of one kind.
func candidateMethods(method string, k, n int, identity bool) []string {
	if method != methodAuto {
		return []string{method}
	}
	var out []string
	if identity { // lets a run take back the calibrator in force
		out = append(out, "identity")
	}
	out = append(out, "temperature")
	if n >= mixtureRows {
		out = append(out, "ensemble_temperature", "beta")
	}
	switch {
	case k > 2 && k <= maxMatrix && n >= rowsPerParameter*(k*k+k):
		out = append(out, "dirichlet")
	case n >= rowsPerParameter*(2*k-1):
		out = append(out, "vector")
	}
	if n >= isotonicRows {
		out = append(out, "isotonic")
	}
	return out
}
