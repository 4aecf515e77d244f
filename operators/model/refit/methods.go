package refit

// rowsPerParameter is how many rows auto wants for each number that a method fits: with fewer, the fit follows the
// noise of the rows, and the level that its test is given is lost to the others.
const rowsPerParameter = 20

// Least rows of the methods of auto whose number of parameters says little: isotonic regression has as many steps as
// the rows let it, and the mixture of ETS is nearly void on a few hundred rows.
const (
	mixtureRows  = 500
	isotonicRows = 2000
	// maxMatrix bounds K of auto's K×K map: its fit takes K³.
	maxMatrix = 32
)

// candidateMethods is what one run fits, in a fixed order. auto is one method of each kind that n rows of k classes
// carry: the family costs level (each is tested at α/m), so it has no two of a kind.
func candidateMethods(method string, k, n int, identity bool) []string {
	if method != methodAuto {
		return []string{method}
	}
	var out []string
	if identity { // to take back what is in force
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
