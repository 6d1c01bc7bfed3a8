// Package conformance keeps docs/conformance.md in step with the suite that it names.
package conformance
