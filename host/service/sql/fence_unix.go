//go:build !windows

package sql

const canSyncDirs = true
