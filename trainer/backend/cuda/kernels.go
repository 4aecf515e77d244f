package cuda

import (
	_ "embed" // the kernels
	"fmt"
	"math"
	"unsafe"
)

// image is what the driver compiles for its device; `make ptx` makes it from kernels/kernels.cu.
//
//go:embed kernels/kernels.ptx
var image string

// kernel is an entry of the image. Its signature has a letter an argument: p device memory, i int32, f float32.
type kernel struct{ name, signature string }

var (
	gemmNN      = kernel{"gemm_nn", "pppiiiiii"}
	gemmNT      = kernel{"gemm_nt", "pppiiiiii"}
	gemmTN      = kernel{"gemm_tn", "pppiiiiii"}
	features    = kernel{"features", "ppippippppii"}
	labels      = kernel{"labels", "pipppppppp"}
	masked      = kernel{"masked", "piippp"}
	scaled      = kernel{"scaled", "ifpp"}
	biased      = kernel{"biased", "iipp"}
	reluBack    = kernel{"relu_back", "ipp"}
	columnSums  = kernel{"column_sums", "iipp"}
	update      = kernel{"update", "pipppp"}
	sums        = kernel{"sums", "iipp"}
	rowLosses   = kernel{"row_losses", "ppiippppiippppp"}
	rowHits     = kernel{"row_hits", "pippppp"}
	rowMeasures = kernel{"row_measures", "pippip"}
	auScores    = kernel{"au_scores", "ppipp"}
	auRanks     = kernel{"au_ranks", "pipp"}
	auCounts    = kernel{"au_counts", "iippp"}
	auWeights   = kernel{"au_weights", "piipppp"}
	auNormalise = kernel{"au_normalise", "ip"}
	split       = kernel{"split", "ippp"}
)

var allKernels = []kernel{
	gemmNN, gemmNT, gemmTN, split,
	features, labels, masked, scaled, biased, reluBack, columnSums, update, sums,
	rowLosses, rowHits, rowMeasures,
	auScores, auRanks, auCounts, auWeights, auNormalise,
}

// grid says with how many threads a kernel runs: x×y blocks of so many.
type grid struct{ x, y, threads int }

// oneBlock is for kernels that sum over everything.
var oneBlock = grid{1, 1, 256}

// maxBlocks bounds the blocks of kernels whose threads go on with the next element.
const maxBlocks = 4096

// elements has a thread for each of n elements.
func elements(n int) grid { return grid{(n + 255) / 256, 1, 256} }

// eachRow has a block for each of n rows of width numbers, of a power of two threads from a warp up to 256.
func eachRow(n, width int) grid {
	threads := 32
	for threads < width && threads < 256 {
		threads *= 2
	}
	return grid{n, 1, threads}
}

// arg is one argument of a launch.
type arg struct {
	kind byte
	bits uint64
}

func ptr(at uint64) arg    { return arg{'p', at} }
func num(v int) arg        { return arg{'i', uint64(uint32(int32(v)))} }
func real32(v float32) arg { return arg{'f', uint64(math.Float32bits(v))} }
func boolean(v bool) arg {
	if v {
		return num(1)
	}
	return num(0)
}

// maxArgs is the largest number of arguments of a kernel.
const maxArgs = 16

// frame is what cuLaunchKernel reads: pointers to the values. It stays where it is, and the driver copies the values.
type frame struct {
	values [maxArgs]uint64
	at     [maxArgs]unsafe.Pointer
}

// marshal fills the frame. Numbers are little-endian, as on every device host, so the low bytes come first.
func (f *frame) marshal(k kernel, args []arg) unsafe.Pointer {
	if len(args) != len(k.signature) {
		panic(fmt.Sprintf("cuda: kernel %s takes %d arguments, not %d", k.name, len(k.signature), len(args)))
	}
	for i, a := range args {
		if a.kind != k.signature[i] {
			panic(fmt.Sprintf("cuda: kernel %s: argument %d is %c, not %c", k.name, i, k.signature[i], a.kind))
		}
		f.values[i] = a.bits
		f.at[i] = unsafe.Pointer(&f.values[i])
	}
	return unsafe.Pointer(&f.at)
}

// epochParams is struct Epoch of kernels/device.h.
type epochParams struct {
	Seed, Threshold         uint64
	Loss                    float64
	Step, Batch, Total, Bad int32
	First                   uint32
	LR, Momentum, Decay     float32
	Decoupled, Nesterov     int32
}

// lossPlan is struct Plan of kernels/loss.h, lossTerm its struct Term.
type lossPlan struct {
	Terms, CSF, Bins, Normalise int32
	Kappa, Nu                   float64
	Term                        [maxTerms]lossTerm
}

type lossTerm struct {
	Kind, Variant, AU, _ int32
	Weight, Gamma        float64
}

const maxTerms = 4

// auBytes is the size of struct Around of kernels/au.h.
const auBytes = 24

// bytesOf views memory as bytes.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}
