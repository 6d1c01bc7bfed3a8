package egress

import (
	"net/netip"
	"sync"
)

// special is a range without public services.
type special struct {
	netip.Prefix
	class Class
}

// special4 is IANA's IPv4 Special-Purpose Address Registry, with multicast. Its few globally
// reachable entries (AS112, AMT, PCP anycast) are infrastructure, not web sites.
var special4 = sync.OnceValue(func() []special {
	return []special{
		{prefix("0.0.0.0/32"), Unspecified},
		{prefix("0.0.0.0/8"), Reserved}, // this network, RFC 791
		{prefix("10.0.0.0/8"), Private},
		{prefix("100.64.0.0/10"), SharedSpace},
		{prefix("127.0.0.0/8"), Loopback},
		{prefix("169.254.0.0/16"), LinkLocal},
		{prefix("172.16.0.0/12"), Private},
		{prefix("192.0.0.0/24"), Reserved}, // IETF protocol assignments, DS-Lite, PCP, TURN
		{prefix("192.0.2.0/24"), Documentation},
		{prefix("192.31.196.0/24"), Reserved}, // AS112-v4
		{prefix("192.52.193.0/24"), Reserved}, // AMT
		{prefix("192.88.99.0/24"), Tunnel},    // 6to4 relays
		{prefix("192.168.0.0/16"), Private},
		{prefix("192.175.48.0/24"), Reserved}, // direct delegation AS112
		{prefix("198.18.0.0/15"), Benchmarking},
		{prefix("198.51.100.0/24"), Documentation},
		{prefix("203.0.113.0/24"), Documentation},
		{prefix("224.0.0.0/4"), Multicast},
		{prefix("255.255.255.255/32"), Multicast}, // limited broadcast
		{prefix("240.0.0.0/4"), Reserved},
	}
})

// special6 is IANA's IPv6 Special-Purpose Address Registry, with multicast and what RFCs have
// taken back (site-local, IPv4-compatible, IPv4-translated, 6bone).
var special6 = sync.OnceValue(func() []special {
	return []special{
		{prefix("::/128"), Unspecified},
		{prefix("::1/128"), Loopback},
		{prefix("::/96"), Tunnel},           // IPv4-compatible
		{prefix("::ffff:0:0:0/96"), Tunnel}, // IPv4-translated, RFC 2765
		{prefix("64:ff9b:1::/48"), Tunnel},  // NAT64 for local use: the place of the IPv4 address is not known
		{prefix("100::/64"), Reserved},      // discard only
		{prefix("100:0:0:1::/64"), Reserved},
		{prefix("2001::/32"), Tunnel}, // Teredo
		{prefix("2001:2::/48"), Benchmarking},
		{prefix("2001:db8::/32"), Documentation},
		{prefix("2001::/23"), Reserved}, // IETF protocol assignments: ORCHID, DRIP, AMT, AS112, PCP, TURN
		{prefix("2002::/16"), Tunnel},   // 6to4
		{prefix("2620:4f:8000::/48"), Reserved},
		{prefix("3ffe::/16"), Reserved}, // 6bone
		{prefix("3fff::/20"), Documentation},
		{prefix("5f00::/16"), Reserved}, // segment routing
		{prefix("fc00::/7"), Private},
		{prefix("fe80::/10"), LinkLocal},
		{prefix("fec0::/10"), LinkLocal}, // site-local
		{prefix("ff00::/8"), Multicast},
	}
})

// metadata are the addresses at which clouds serve credentials to their machines. They can be
// reached only if they are named individually: a network that contains one does not name it.
var metadata = sync.OnceValue(func() map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, a := range []string{
		"169.254.169.254", // most clouds
		"169.254.170.2",   // AWS, of containers
		"169.254.170.23",  // AWS, of pods
		"169.254.42.42",   // Scaleway
		"169.254.0.23",    // Tencent
		"100.100.100.200", // Alibaba
		"168.63.129.16",   // Azure
		"192.0.0.192",     // Oracle
		"fd00:ec2::254",   // AWS
		"fd00:ec2::23",    // AWS, of pods
		"fd20:ce::254",    // Google
		"fd00:42::42",     // Scaleway
		"fe80::a9fe:a9fe", // OpenStack
	} {
		set[netip.MustParseAddr(a)] = true
	}
	return set
})

func isMetadata(a netip.Addr) bool { return metadata()[a] }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
