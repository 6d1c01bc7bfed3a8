package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Networks are the addresses that may be dialled although they are not public. The zero
// value names none. It is immutable, and safe for concurrent use.
type Networks struct {
	prefixes []netip.Prefix
}

// sets are the named sets of networks.
var sets = map[string][]string{
	"loopback":   {"127.0.0.0/8", "::1/128"},
	"private":    {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"},
	"link-local": {"169.254.0.0/16", "fe80::/10"},
	"shared":     {"100.64.0.0/10"},
}

// ParseNetwork reads one entry: an address, a network such as 10.1.0.0/16, or one of the
// names loopback, private, link-local and shared (RFC 6598).
func ParseNetwork(s string) (Networks, error) {
	if set, ok := sets[s]; ok {
		var n Networks
		for _, p := range set {
			n.prefixes = append(n.prefixes, prefix(p))
		}
		return n, nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return Networks{}, fmt.Errorf("%q: an address with a zone cannot be named", s)
		}
		a = a.Unmap()
		return Networks{[]netip.Prefix{netip.PrefixFrom(a, a.BitLen())}}, nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return Networks{}, fmt.Errorf("%q is neither an address, nor a network such as 10.1.0.0/16, nor one of %s", s, strings.Join(setNames(), ", "))
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return Networks{}, fmt.Errorf("%q: write a network of IPv4 as one", s)
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	if m := p.Masked(); m != p {
		return Networks{}, fmt.Errorf("%q has bits behind its length: write %s, or the address alone", s, m)
	}
	if p.Bits() == 0 {
		return Networks{}, fmt.Errorf("%q matches every address; list specific networks", s)
	}
	return Networks{[]netip.Prefix{p}}, nil
}

func setNames() []string {
	var names []string
	for name := range sets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// And is the union of both.
func (n Networks) And(m Networks) Networks {
	return Networks{append(slices.Clip(n.prefixes), m.prefixes...)}
}

// Names reports whether an address of a class is named. Addresses of metadata services are
// named only alone, addresses with zones never.
func (n Networks) Names(a netip.Addr, c Class) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	for _, p := range n.prefixes {
		if p.Contains(a) && (c != Metadata || p.IsSingleIP()) {
			return true
		}
	}
	return false
}

// String lists the networks in a form that can be parsed again.
func (n Networks) String() string {
	var b strings.Builder
	for i, p := range n.prefixes {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.String())
	}
	return b.String()
}
