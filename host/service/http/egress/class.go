// Package egress makes outgoing connections on behalf of untrusted code: to public addresses, and
// to others only if they are named.
//
// What counts is the address that is dialled. A [Dialer] resolves a name itself, checks every
// answer, dials only checked addresses, and checks once more when the socket is about to connect.
// So DNS rebinding, redirects and other spellings of an address do not get past it, and neither
// does a proxy: it is asked for a tunnel to the address, never for the name.
package egress

import (
	"fmt"
	"net/netip"
)

// Class says what an address is for.
type Class uint8

// Classes of addresses. Only Public ones are dialled without being named.
const (
	Public        Class = iota
	Invalid             // no address, or one with a zone
	Unspecified         // 0.0.0.0, ::
	Loopback            // of this machine
	Private             // RFC 1918, unique local IPv6
	LinkLocal           // link-local; also IPv6's deprecated site-local addresses
	SharedSpace         // RFC 6598, carrier-grade NAT
	Metadata            // where clouds serve credentials to their machines
	Multicast           // also limited broadcast
	Documentation       // and examples
	Benchmarking        // RFC 2544, RFC 5180
	Tunnel              // IPv6 with embedded IPv4: 6to4, Teredo, ISATAP, compatible, translated
	Reserved            // other ranges that the registries reserve
)

var classNames = [...]string{
	Public: "public", Invalid: "invalid", Unspecified: "unspecified", Loopback: "loopback", Private: "private",
	LinkLocal: "link-local", SharedSpace: "shared", Metadata: "metadata", Multicast: "multicast",
	Documentation: "documentation", Benchmarking: "benchmarking", Tunnel: "tunnel", Reserved: "reserved",
}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// Judge classifies addresses. The zero value knows the registries; NAT64 are the prefixes with
// which the local network translates to IPv4 (RFC 6052: 32, 40, 48, 56, 64 or 96 bits): such an
// address has the class of the IPv4 address in it. It is safe for concurrent use.
type Judge struct {
	NAT64 []netip.Prefix
}

// Class is what an address is for. IPv4-mapped IPv6 addresses have the class of the IPv4 address,
// since that is what a socket dials, and so have those of NAT64's well-known prefix.
func (j *Judge) Class(a netip.Addr) Class {
	if !a.IsValid() || a.Zone() != "" {
		return Invalid
	}
	a = a.Unmap()
	if isMetadata(a) {
		return Metadata
	}
	if a.Is4() {
		return lookup(special4(), a)
	}
	for _, p := range j.NAT64 {
		if p.Contains(a) {
			if c := within(a, p); c != Public {
				return c
			}
		}
	}
	if wellKnown.Contains(a) {
		return within(a, wellKnown)
	}
	if c := lookup(special6(), a); c != Public {
		return c
	}
	if !globalUnicast.Contains(a) {
		return Reserved // not allocated yet
	}
	if isISATAP(a) {
		return Tunnel
	}
	return Public
}

// ParseNAT64 reads a prefix for [Judge].
func ParseNAT64(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is6() || p.Addr().Is4In6() || p != p.Masked() {
		return p, fmt.Errorf("%q is not a prefix of IPv6", s)
	}
	if _, ok := embedded(p.Addr(), p.Bits()); !ok {
		return p, fmt.Errorf("%q: prefixes of translators have 32, 40, 48, 56, 64 or 96 bits, and bits 64 to 71 are zero (RFC 6052)", s)
	}
	return p, nil
}

// wellKnown is NAT64's prefix (RFC 6052).
var wellKnown = netip.PrefixFrom(netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b}), 96)

// globalUnicast is the only part of IPv6 from which public addresses are allocated.
var globalUnicast = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0x20}), 3)

func lookup(table []special, a netip.Addr) Class {
	for i := range table {
		if table[i].Contains(a) {
			return table[i].class
		}
	}
	return Public
}

// within is the class of the IPv4 address in a translated one.
func within(a netip.Addr, p netip.Prefix) Class {
	v4, ok := embedded(a, p.Bits())
	if !ok {
		return Reserved
	}
	if isMetadata(v4) {
		return Metadata
	}
	return lookup(special4(), v4)
}

// embedded is the IPv4 address in one that was translated with a prefix of so many bits
// (RFC 6052, 2.2: bits 64 to 71 are skipped, and zero).
func embedded(a netip.Addr, bits int) (netip.Addr, bool) {
	b := a.As16()
	var v4 [4]byte
	switch bits {
	case 96:
		copy(v4[:], b[12:])
		return netip.AddrFrom4(v4), b[8] == 0
	case 32, 40, 48, 56, 64:
	default:
		return netip.Addr{}, false
	}
	at := bits / 8
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = b[at]
		at++
	}
	return netip.AddrFrom4(v4), b[8] == 0
}

// isISATAP reports whether the lower half is that of an address that wraps IPv4 in a site
// (RFC 5214, 6.1).
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
