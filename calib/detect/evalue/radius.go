package evalue

import "math"

// mixture is ρ of the normal mixture: the bound is tightest near n = 4ρ·(a few) rows, here some thousands.
const mixture = 500

// ECERadius returns how far the ECE of n rows in the given number of bins can be from what they were drawn with, at all
// n at once with probability 1 - alpha:
//
//	|Σ_j |Σ_{i in j} (a_i - c_i)| - Σ_j |Σ_{i in j} (P(a_i = 1 | past) - c_i)|| / n ≤ radius
//	radius = sqrt((n/4 + ρ)·(2M ln 2 + 2 ln(1/alpha) + ln((n/4 + ρ)/ρ))) / n,   ρ = 500
//
// a_i - P(a_i | past) is 1/4-sub-Gaussian; Σ_j |S_j| is the largest of 2^M signed sums, each of them under Robbins'
// normal mixture at alpha/2^M. So ECE(new) ≤ ECE(old) + δ + 2·radius is refuted, or proved, at any time. It is +Inf for
// n = 0.
// Reference: Howard, Ramdas, McAuliffe, Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals
// of Statistics 49, 2021, proposition 5.
func ECERadius(n float64, bins int, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1) || bins < 1 || !(n >= 0) {
		panic("evalue: ECERadius wants n ≥ 0, bins ≥ 1 and alpha in (0, 1)")
	}
	v := n/4 + mixture
	return math.Sqrt(v*(2*float64(bins)*math.Ln2+2*math.Log(1/alpha)+math.Log(v/mixture))) / n
}
