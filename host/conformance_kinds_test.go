package host_test

import (
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/router"
)

// The mailboxes of host/mailbox, for the suite within the package host, which must not import them.
func init() {
	for _, name := range mailbox.Kinds() {
		k, _ := mailbox.ParseKind(name)
		host.KindsOfMailboxes[name] = mailbox.New(k).Make
	}
	host.KindsOfMailboxes["priority by type"] = mailbox.New(mailbox.Priority).WithLevels(3).WithTypes(map[string]int{"high": 0, "low": 2}).WithOtherwise(1).Make
	for _, full := range []mailbox.Kind{mailbox.DropNewest, mailbox.DropOldest, mailbox.Block} {
		for _, k := range []mailbox.Kind{mailbox.Priority, mailbox.ControlAware, mailbox.Deduplicating} {
			host.KindsOfMailboxes[k.String()+"/"+full.String()] = mailbox.New(k).WithFull(full).Make
		}
	}
	for name, logic := range map[string]router.Make{
		"round-robin": router.RoundRobin, "random": router.Random, "smallest": router.SmallestMailbox, "balancing": router.Balancing,
		"hashing": router.ConsistentHashing(router.Hashing{Field: "n"}), "hashing by load": router.ConsistentHashing(router.Hashing{Field: "n", Load: 1.5}),
		"tail-chopping": router.TailChopping(0, 0), "all/broadcast": router.Broadcast, "all/scatter-gather": router.ScatterGather(0),
	} {
		host.SoakRouters[name] = func(n int, routee host.Props, l host.Limits) host.Props {
			return router.Pool(n, routee, logic).WithLimits(l).Props()
		}
	}
	host.KindsOfMailboxes["block a second"] = mailbox.New(mailbox.Block).WithWait(time.Second).Make
}
