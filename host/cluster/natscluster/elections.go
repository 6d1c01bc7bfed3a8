package natscluster

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname
)

// How long the embedded servers wait before they elect another leader is in variables of the library that only its own tests
// can set. With its values the directory stands still for 4 to 6 s after its leader is killed, with these for about one.
// TestElections fails when an update of the library renames or changes them.

//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

//go:linkname minCampaignTimeout github.com/nats-io/nats-server/v2/server.minCampaignTimeout
var minCampaignTimeout time.Duration

//go:linkname maxCampaignTimeout github.com/nats-io/nats-server/v2/server.maxCampaignTimeout
var maxCampaignTimeout time.Duration

//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
var hbInterval time.Duration

//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
var lostQuorumInterval time.Duration

//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
var lostQuorumCheck time.Duration

// timing are these variables and the values that this package gives them before it starts the first server.
var timing = []struct {
	name        string
	at          *time.Duration
	theirs, our time.Duration
}{
	{"minElectionTimeout", &minElectionTimeout, 4 * time.Second, 750 * time.Millisecond},
	{"maxElectionTimeout", &maxElectionTimeout, 9 * time.Second, 2500 * time.Millisecond},
	{"minCampaignTimeout", &minCampaignTimeout, 100 * time.Millisecond, 50 * time.Millisecond},
	{"maxCampaignTimeout", &maxCampaignTimeout, 800 * time.Millisecond, 400 * time.Millisecond},
	{"hbInterval", &hbInterval, time.Second, 200 * time.Millisecond},
	{"lostQuorumInterval", &lostQuorumInterval, 10 * time.Second, 2500 * time.Millisecond},
	{"lostQuorumCheck", &lostQuorumCheck, 10 * time.Second, time.Second},
}

// found are the library's own values.
var found = func() (all []time.Duration) {
	for _, t := range timing {
		all = append(all, *t.at)
	}
	return all
}()

var shortElections = sync.OnceFunc(func() {
	for _, t := range timing {
		*t.at = t.our
	}
})
