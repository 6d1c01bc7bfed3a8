// Package release has tests alone; see release_test.go.
package release
