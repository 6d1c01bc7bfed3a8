package sql

// canSyncDirs is false: NTFS keeps its own journal of names.
const canSyncDirs = false
