package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/client"
)

const classes = 10

func main() {
	brokers := flag.String("brokers", "localhost:9092", "Kafka brokers, separated by commas")
	follow := flag.String("follow", "", "address of a plumbline process whose calibrator is applied")
	flag.Parse()
	logger, err := client.New("example", client.Options{Version: "1", To: "kafka://" + *brokers})
	if err != nil {
		log.Fatal(err)
	}
	for range 100 { // as requests of a server
		r := client.Rows{Classes: classes}
		var labels []int32
		for range 10 {
			r.IDs = append(r.IDs, fmt.Sprintf("example-%016x", rand.Uint64()))
			for range classes { // here your model's logits
				r.Logits = append(r.Logits, float32(3*rand.NormFloat64()))
			}
			labels = append(labels, rand.Int32N(classes)) // here the true class, when you know it
		}
		logger.Log(r)
		logger.Label(r.IDs, labels)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if stats := logger.Close(ctx); stats.Sent != stats.Logged {
		log.Fatalf("not all rows were sent: %+v", stats)
	}
	log.Print("sent 1000 predictions of model example, version 1, and their labels")
	if *follow == "" {
		return
	}
	calibrator := client.Follow(*follow, "example", client.FollowOptions{})
	defer calibrator.Close()
	p := make([]float64, classes)
	if err := calibrator.Apply(p, []float64{3, 1, 0, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		log.Fatal(err) // this row has no probabilities
	}
	log.Printf("revision %d, corrected by %+v (%s): %.3f", calibrator.Revision(), calibrator.InForce().Correction,
		calibrator.Problem(), p)
}
