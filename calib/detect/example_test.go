package detect_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect"
)

// A model that is wrong from the first row: it says 10 points more than it is right. No change is needed to see that.
func ExampleAlarm() {
	alarm, err := detect.NewAlarm(detect.AlarmSpec{})
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for pane := range int64(1000) {
		var grid acc.Grid
		for range 100 {
			c := .6 + .4*rng.Float64()
			if err := grid.Add(c, 1, rng.Float64() < c-.1); err != nil {
				panic(err)
			}
		}
		p, err := detect.FromGrid(&grid, alarm.Bins())
		if err != nil {
			panic(err)
		}
		fired, err := alarm.Observe(pane, p, nil)
		if err != nil {
			panic(err)
		}
		if fired != nil {
			fmt.Println("alarm within 2,000 rows:", pane < 20)
			fmt.Println("direction:", fired.Headline.Direction)
			fmt.Println("since about:", fired.Headline.Since)
			return
		}
	}
	// Output:
	// alarm within 2,000 rows: true
	// direction: -1
	// since about: 0
}
