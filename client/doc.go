// Package client sends what a model answered, and later what was true, from a server in Go to plumbline, and applies
// the calibrators that it publishes. It makes the promises of clients/python.
//
//	logger, err := client.New("resnet", client.Options{Version: "7", To: "kafka://localhost:9092"})
//	logger.Log(client.Rows{IDs: ids, Logits: logits, Classes: 10, Slices: map[string][]string{"region": {"eu"}}})
//	logger.Label(ids, labels)
//
//	calibrator := client.Follow("http://localhost:8080", "resnet", client.FollowOptions{})
//	err = calibrator.Apply(probabilities, logits)
//
// A call copies its rows and returns; a goroutine does the rest. Memory is bounded: beyond it a call waits for as long
// as Options.Block says, then its rows are dropped. Stats counts every row.
package client
