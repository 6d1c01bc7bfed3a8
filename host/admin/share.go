package admin

import "golang.org/x/sync/semaphore"

// share is whose part of the server's room a caller uses: those with fewer rights cannot take that of others.
type share uint8

const (
	readers share = iota // the read-only token
	writers              // the full token
	owner                // the socket, which is the user's alone
	shares  = 3
)

// of is a share's part of a total: half for the owner, a quarter for each token.
func (h share) of(total int64) int64 {
	if h == owner {
		return max(total/2, 1)
	}
	return max(total/4, 1)
}

// room is what the callers of one share have.
type room struct {
	streams, samples, bodies *semaphore.Weighted
}

func (h share) room(b bounds) room {
	part := func(total int64) *semaphore.Weighted { return semaphore.NewWeighted(h.of(total)) }
	return room{part(int64(b.streams)), part(int64(b.samples)), part(b.bodies)}
}

// share is the one of a call that was admitted.
func (c *call) share() share {
	switch {
	case c.door.trusts:
		return owner
	case c.access == full:
		return writers
	}
	return readers
}
