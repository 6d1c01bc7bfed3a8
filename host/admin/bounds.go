package admin

import "time"

// bounds are what a server spends on its callers. Bodies, streams and samples are divided into shares.
type bounds struct {
	connections int           // at each listener; beyond that the oldest unauthenticated one is closed
	header      int           // bytes
	body        int64         // bytes of a command
	message     int64         // bytes of a message that is sent
	module      int64         // bytes of the body of an upgrade: a module in base64
	bodies      int64         // bytes of all bodies that are read at a time
	headTime    time.Duration // for the header of a request
	readTime    time.Duration // for the whole of it
	writeTime   time.Duration // for an answer, and for each piece of a stream
	idleTime    time.Duration // between two requests
	streams     int           // at a time
	samples     int           // flows and profiles at a time
	sessions    int
	sessionTime time.Duration
	sample      time.Duration // the longest flow or profile
	ask         time.Duration // the longest wait for an answer
	refusals    int           // unauthenticated requests in a second; after that each waits
	penalty     time.Duration // so long
}

var usual = bounds{
	connections: 256, header: 16 << 10, body: 1 << 20, message: 16 << 20, module: 32 << 20, bodies: 128 << 20,
	headTime: 5 * time.Second, readTime: 30 * time.Second, writeTime: 10 * time.Second, idleTime: 2 * time.Minute,
	streams: 64, samples: 4, sessions: 64, sessionTime: 12 * time.Hour, sample: time.Minute, ask: time.Hour,
	refusals: 20, penalty: 250 * time.Millisecond,
}
