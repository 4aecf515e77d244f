// Package optim has the arithmetic of optimisation: a step of stochastic gradient descent with momentum and weight
// decay ([SGD]), and the learning rate by epoch ([Schedule]).
//
// Backends call the step with their parameters and gradients, package recipe asks the schedule for a rate. On amd64 the
// usual step is vector code with the bits of the plain one. The package must not know heads, losses or rows.
package optim
