// Package finetune holds what the trigger of new heads, and their proof, are configured by.
package finetune
