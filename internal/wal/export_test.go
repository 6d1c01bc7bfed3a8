package wal

// Tally is what Pending and Used would say with the lock.
func (l *Log) Tally() (pending, used int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued + int64(len(l.pending)), l.size() - l.free + l.queued
}
