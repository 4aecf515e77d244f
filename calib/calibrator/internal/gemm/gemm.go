package gemm

import "math"

// Rows and Cols are those of a tile of the result, which its sides must be multiples of.
const (
	Rows = 8
	Cols = 16
)

// Pad returns n rounded up to a multiple of Cols, which is one of Rows, too.
func Pad(n int) int { return (n + Cols - 1) / Cols * Cols }

// Matrix is row-major; the next row begins Stride numbers on.
type Matrix struct {
	Data   []float64
	Stride int
}

// Size is that of a product of M×K and K×N.
type Size struct{ M, N, K int }

// Add adds the product A·B to C, M×K times K×N:
//
//	C_ij += Σ_p A_ip B_pj
//
// It panics if M is no multiple of Rows, N is none of Cols, or a matrix is too short.
func Add(c, a, b Matrix, of Size) {
	add(c.Data, a.Data, b.Data, shape{m: of.M, n: of.N, k: of.K, cs: c.Stride, ai: a.Stride, ap: 1, bp: b.Stride})
}

// AddTransposed adds the product Aᵀ·B to C, with A K×M: C_ij += Σ_p A_pi B_pj. It panics as Add does.
func AddTransposed(c, a, b Matrix, of Size) {
	add(c.Data, a.Data, b.Data, shape{m: of.M, n: of.N, k: of.K, cs: c.Stride, ai: 1, ap: a.Stride, bp: b.Stride})
}

// shape are sizes and strides: A_ip is at i·ai + p·ap, B_pj at p·bp + j, C_ij at i·cs + j.
type shape struct{ m, n, k, cs, ai, ap, bp int }

func add(c, a, b []float64, s shape) {
	if s.m < 0 || s.n < 0 || s.k < 0 || s.m%Rows != 0 || s.n%Cols != 0 {
		panic("gemm: sides that are not whole tiles")
	}
	if s.m == 0 || s.n == 0 || s.k == 0 {
		return
	}
	// The last elements: the vector paths do not check.
	_ = c[(s.m-1)*s.cs+s.n-1]
	_ = a[(s.m-1)*s.ai+(s.k-1)*s.ap]
	_ = b[(s.k-1)*s.bp+s.n-1]
	for j := 0; j < s.n; j += Cols {
		for i := 0; i < s.m; i += Rows {
			tile(c[i*s.cs+j:], a[i*s.ai:], b[j:], s)
		}
	}
}

// tileGo is one tile in plain Go.
func tileGo(c, a, b []float64, s shape) {
	for i := range Rows {
		row := (*[Cols]float64)(c[i*s.cs:])
		for p := range s.k {
			v := a[i*s.ai+p*s.ap]
			for j, w := range (*[Cols]float64)(b[p*s.bp:]) {
				row[j] = math.FMA(v, w, row[j])
			}
		}
	}
}
