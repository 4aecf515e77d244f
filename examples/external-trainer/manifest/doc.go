// Package manifest decodes the Kubernetes manifests of the external trainer strictly, by the types of the API itself.
//
// It is a module of its own with tests only, so that nobody else fetches those types.
package manifest
