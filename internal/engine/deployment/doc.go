// Package deployment is what the processes of one consumer group share: the topics on the brokers, which must stay the
// ones that the state is of, and the checkpoint store with the plan of the shards.
//
// A process that runs calls [Deployment.Open]. Commands change the deployment from outside: [Deployment.Scale],
// [Deployment.Reset], [Deployment.TopicsMoved]. The package must not know how shards and model tasks are built and run.
package deployment
