package main

import (
	"fmt"
	"slices"
	"testing"
)

// bit is a value of 0 or 1 whose rate changes every 1,500 rows; the same in the script that river's alarms below come
// from.
func bit(i int) float64 {
	x := uint32(i)*2654435761 + 12345
	x ^= x >> 16
	x *= 0x45d9f3b
	x ^= x >> 16
	if float64(x)/(1<<32) < []float64{.15, .4, .2, .6, .25, .1}[i/1500%6] {
		return 1
	}
	return 0
}

// TestRiver: all alarms in 12,000 rows, as river 0.22.0 has them; gaps are the bit less 0.3.
func TestRiver(t *testing.T) {
	for key, want := range map[string][]int{
		"Page–Hinkley (a − c) 20": {1531, 2017, 2456, 3077, 4527, 6049, 7114, 7677, 9331, 10448, 10702, 11455},
		"Page–Hinkley (a − c) 50": {1626, 3215, 4604, 6136, 7670, 9981, 10716},
		"DDM (error) 3":           {1628, 4663, 10999, 11072}, "DDM (error) 4.5": {1986, 4782, 11509},
		"ADWIN (a − c) 0.002":  {1599, 3103, 4575, 6079, 7775, 10591},
		"ADWIN (a − c) 1e-06":  {1631, 3359, 4607, 6143, 8031, 10655},
		"HDDM_A (error) 0.001": {1578, 4524, 10716},
		"HDDM_A (error) 1e-06": {1579, 4549, 10860},
		"HDDM_W (error) 0.001": {1545, 4520, 5145, 6425, 10574, 11552, 11965},
		"HDDM_W (error) 1e-05": {1598, 4527, 10702},
	} {
		found := false
		for _, k := range peerKinds {
			for _, v := range []float64{20, 50, 3, 4.5, 2e-3, 1e-6, 1e-3, 1e-5} {
				if fmt.Sprintf("%s %g", k.name, v) != key {
					continue
				}
				found = true
				d, alarms := k.make(v), []int(nil)
				for i := range 12_000 {
					x := bit(i)
					if k.gap {
						x -= .3
					}
					if d.update(x) {
						alarms = append(alarms, i)
					}
				}
				if !slices.Equal(alarms, want) {
					t.Errorf("%s: alarms at %v, river's at %v", key, alarms, want)
				}
			}
		}
		if !found {
			t.Errorf("no detector %q", key)
		}
	}
}
