package service

// Nodes are the nodes of a cluster, as a service needs them to reach those of its kind on other nodes. Its methods may be called by any
// goroutine.
type Nodes interface {
	// Self is the number of this node.
	Self() uint16
	// Acting reports whether this node may act: its lease is not over.
	Acting() bool
	// Others are the numbers of the other nodes that are there, in ascending order.
	Others() []uint16
	// Changes has f called, by any goroutine, after nodes have come or gone; f must not block.
	Changes(f func()) (stop func())
}
