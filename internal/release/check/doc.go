// Package check has the checks of deploy/ that need libraries: the compose file by Docker's own parser, what the chart
// makes by the types of Kubernetes and the Prometheus operator, and the services of the compose file run natively with
// its files. `make deploy-check` runs them with the scripts beside.
package check
