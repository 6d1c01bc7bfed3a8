package egress

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// Every range of IANA's special-purpose registries (IPv4 and IPv6), of multicast and of what RFCs
// have taken back: its first and last address, and some within.
func TestSpecialPurposeRegistries(t *testing.T) {
	var j Judge
	for _, row := range []struct {
		prefix string
		class  Class
		rfc    string
	}{
		{"0.0.0.0/32", Unspecified, "1122 this host"},
		{"0.0.0.1/32", Reserved, "791 this network"},
		{"0.255.255.255/32", Reserved, "791 this network"},
		{"10.0.0.0/8", Private, "1918"},
		{"100.64.0.0/10", SharedSpace, "6598"},
		{"127.0.0.0/8", Loopback, "1122"},
		{"169.254.0.0/16", LinkLocal, "3927"},
		{"172.16.0.0/12", Private, "1918"},
		{"192.0.0.0/24", Reserved, "6890 IETF protocol assignments"},
		{"192.0.0.0/29", Reserved, "7335 IPv4 service continuity"},
		{"192.0.0.8/32", Reserved, "7600 dummy address"},
		{"192.0.0.9/32", Reserved, "7723 PCP anycast"},
		{"192.0.0.10/32", Reserved, "8155 TURN anycast"},
		{"192.0.0.170/32", Reserved, "8880 NAT64 discovery"},
		{"192.0.0.171/32", Reserved, "8880 NAT64 discovery"},
		{"192.0.2.0/24", Documentation, "5737"},
		{"192.31.196.0/24", Reserved, "7535 AS112"},
		{"192.52.193.0/24", Reserved, "7450 AMT"},
		{"192.88.99.0/24", Tunnel, "7526 6to4 relay"},
		{"192.88.99.2/32", Tunnel, "6751 6a44 relay"},
		{"192.168.0.0/16", Private, "1918"},
		{"192.175.48.0/24", Reserved, "7534 AS112"},
		{"198.18.0.0/15", Benchmarking, "2544"},
		{"198.51.100.0/24", Documentation, "5737"},
		{"203.0.113.0/24", Documentation, "5737"},
		{"224.0.0.0/4", Multicast, "5771"},
		{"240.0.0.0/5", Reserved, "1112"},
		{"255.255.255.255/32", Multicast, "8190 limited broadcast"},

		{"::1/128", Loopback, "4291"},
		{"::/128", Unspecified, "4291"},
		{"::ffff:10.0.0.0/104", Private, "4291 IPv4-mapped"},
		{"64:ff9b::/128", Unspecified, "6052"},
		{"64:ff9b::10.0.0.0/104", Private, "6052"},
		{"64:ff9b:1::/48", Tunnel, "8215"},
		{"100::/64", Reserved, "6666"},
		{"100:0:0:1::/64", Reserved, "9780"},
		{"2001::/23", Reserved, "2928"},
		{"2001::/32", Tunnel, "4380 Teredo"},
		{"2001:1::1/128", Reserved, "7723"},
		{"2001:1::2/128", Reserved, "8155"},
		{"2001:1::3/128", Reserved, "9665"},
		{"2001:2::/48", Benchmarking, "5180"},
		{"2001:3::/32", Reserved, "7450"},
		{"2001:4:112::/48", Reserved, "7535"},
		{"2001:10::/28", Reserved, "4843"},
		{"2001:20::/28", Reserved, "7343"},
		{"2001:30::/28", Reserved, "9374"},
		{"2001:db8::/32", Documentation, "3849"},
		{"2002::/16", Tunnel, "3056"},
		{"2620:4f:8000::/48", Reserved, "7534"},
		{"3fff::/20", Documentation, "9637"},
		{"5f00::/16", Reserved, "9602"},
		{"fc00::/7", Private, "4193"},
		{"fe80::/10", LinkLocal, "4291"},

		{"::/96", Tunnel, "4291 IPv4-compatible"},
		{"::ffff:0:0:0/96", Tunnel, "2765 IPv4-translated"},
		{"3ffe::/16", Reserved, "3701 6bone"},
		{"fec0::/10", LinkLocal, "3879 site-local"},
		{"ff00::/8", Multicast, "4291"},
		{"4000::/3", Reserved, "not given out"},
		{"e000::/4", Reserved, "not given out"},
		{"200::/7", Reserved, "4048 NSAP"},
	} {
		p := netip.MustParsePrefix(row.prefix)
		for _, a := range []netip.Addr{first(p), second(p), middle(p), last(p)} {
			got := j.Class(a)
			if got == Public {
				t.Errorf("%s (RFC %s): %v is public", row.prefix, row.rfc, a)
			}
			if a == middle(p) && got != row.class && got != Metadata {
				t.Errorf("%s (RFC %s): %v is %v, want %v", row.prefix, row.rfc, a, got, row.class)
			}
		}
	}
}

func first(p netip.Prefix) netip.Addr { return p.Masked().Addr() }

func second(p netip.Prefix) netip.Addr {
	if a := first(p).Next(); p.Contains(a) {
		return a
	}
	return first(p)
}

// middle has the first free bit and the last one set.
func middle(p netip.Prefix) netip.Addr {
	b := first(p).AsSlice()
	if n := p.Bits(); n < 8*len(b) {
		b[n/8] |= 0x80 >> (n % 8)
		b[len(b)-1] |= 1
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func last(p netip.Prefix) netip.Addr {
	b := first(p).AsSlice()
	for n := p.Bits(); n < 8*len(b); n++ {
		b[n/8] |= 0x80 >> (n % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestPublicAddresses(t *testing.T) {
	var j Judge
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
		"128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2606:4700::1111", "2a00:1450:4001::2003", "2001:200::1", "2003::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
	} {
		if c := j.Class(netip.MustParseAddr(s)); c != Public {
			t.Errorf("%s is %v", s, c)
		}
	}
}

func TestMetadata(t *testing.T) {
	var j Judge
	for _, s := range []string{
		"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
		"::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b::a83f:8110",
	} {
		a := netip.MustParseAddr(s)
		c := j.Class(a)
		if c != Metadata {
			t.Errorf("%s is %v", s, c)
		}
		var wide Networks
		for _, network := range []string{"link-local", "private", "shared", "169.254.0.0/16", "100.64.0.0/10", "fd00::/8", "64:ff9b::/96", "192.0.0.0/24", "168.0.0.0/8"} {
			n, err := ParseNetwork(network)
			if err != nil {
				t.Fatal(err)
			}
			wide = wide.And(n)
		}
		if wide.Names(a, c) {
			t.Errorf("%s is named by a network", s)
		}
		if alone, _ := ParseNetwork(s); !alone.Names(a, c) {
			t.Errorf("%s is not named by itself", s)
		}
	}
}

// Whatever form of IPv6 an IPv4 address that is not public is wrapped in, the whole is not public.
func TestEmbeddedIPv4(t *testing.T) {
	translators := []string{"2a00:32::/32", "2a00:40:100::/40", "2a00:48:2::/48", "2a00:56:3::/56", "2a00:64:4::/64", "2a00:96:5::/96"}
	j := Judge{}
	for _, s := range translators {
		p, err := ParseNAT64(s)
		if err != nil {
			t.Fatal(err)
		}
		j.NAT64 = append(j.NAT64, p)
	}
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(special4()).Draw(t, "range")
		v4 := within4(t, row.Prefix)
		b := v4.As4()
		inner := j.Class(v4)
		if inner == Public {
			t.Fatalf("%v is public", v4)
		}
		var rest [16]byte
		copy(rest[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "rest"))
		for name, a := range forms(b, rest) {
			if c := j.Class(a); c == Public {
				t.Errorf("%v as %s, %v, is public", v4, name, a)
			}
		}
		for _, p := range j.NAT64 {
			if c := j.Class(embed(p, b)); c != inner {
				t.Errorf("%v within %v, %v, is %v, want %v", v4, p, embed(p, b), c, inner)
			}
		}
		if c := j.Class(embed(wellKnown, b)); c != inner {
			t.Errorf("%v within %v is %v, want %v", v4, wellKnown, c, inner)
		}
		if c := j.Class(netip.AddrFrom16(v4.As16())); c != inner {
			t.Errorf("%v mapped is %v, want %v", v4, c, inner)
		}
		if c := j.Class(netip.AddrFrom16(v4.As16()).WithZone("eth0")); c != Invalid {
			t.Errorf("%v with a zone is %v", v4, c)
		}
	})
}

func within4(t *rapid.T, p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	any4 := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
	for i := range 32 {
		if i >= p.Bits() && any4[i/8]&(0x80>>(i%8)) != 0 {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	return netip.AddrFrom4(b)
}

// forms are the ways in which IPv6 wraps IPv4.
func forms(v4 [4]byte, rest [16]byte) map[string]netip.Addr {
	at := func(head []byte, where int, invert bool, fill bool) netip.Addr {
		var b [16]byte
		if fill {
			b = rest
		}
		copy(b[:], head)
		for i, x := range v4 {
			if invert {
				x = ^x
			}
			b[where+i] = x
		}
		return netip.AddrFrom16(b)
	}
	isatap := func(u byte) netip.Addr {
		b := rest
		b[0] = 0x2a // of the public space
		copy(b[8:], []byte{u, 0, 0x5e, 0xfe})
		copy(b[12:], v4[:])
		return netip.AddrFrom16(b)
	}
	return map[string]netip.Addr{
		"mapped":          at([]byte{10: 0xff, 11: 0xff}, 12, false, false),
		"compatible":      at(nil, 12, false, false),
		"translated":      at([]byte{8: 0xff, 9: 0xff, 11: 0}, 12, false, false),
		"NAT64":           at([]byte{0, 0x64, 0xff, 0x9b, 11: 0}, 12, false, false),
		"NAT64 local /48": at([]byte{0, 0x64, 0xff, 0x9b, 0, 1}, 6, false, true),
		"NAT64 local /96": at([]byte{0, 0x64, 0xff, 0x9b, 0, 1}, 12, false, true),
		"6to4":            at([]byte{0x20, 0x02}, 2, false, true),
		"Teredo client":   at([]byte{0x20, 0x01, 0, 0}, 12, true, true),
		"Teredo server":   at([]byte{0x20, 0x01, 0, 0}, 4, false, true),
		"ISATAP":          isatap(0),
		"ISATAP global":   isatap(2),
	}
}

// embed is RFC 6052, 2.2, written as its table.
func embed(p netip.Prefix, v4 [4]byte) netip.Addr {
	b := p.Addr().As16()
	places := map[int][4]int{32: {4, 5, 6, 7}, 40: {5, 6, 7, 9}, 48: {6, 7, 9, 10}, 56: {7, 9, 10, 11}, 64: {9, 10, 11, 12}, 96: {12, 13, 14, 15}}[p.Bits()]
	for i, at := range places {
		b[at] = v4[i]
	}
	return netip.AddrFrom16(b)
}

func TestParseNAT64(t *testing.T) {
	for _, s := range []string{"", "10.0.0.0/8", "2a00::/33", "2a00::1/96", "::ffff:0:0/96", "2a00:0:0:0:ff00::/96", "2a00::/128"} {
		if p, err := ParseNAT64(s); err == nil {
			t.Errorf("%q is %v", s, p)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	for s, want := range map[string]string{
		"10.1.0.0/16": "10.1.0.0/16", "::1": "::1/128", "127.0.0.1": "127.0.0.1/32", "::ffff:10.0.0.1": "10.0.0.1/32", "::ffff:10.0.0.0/104": "10.0.0.0/8",
		"loopback": "127.0.0.0/8 ::1/128", "shared": "100.64.0.0/10",
	} {
		n, err := ParseNetwork(s)
		if err != nil || n.String() != want {
			t.Errorf("%q: %v, %v", s, n, err)
		}
	}
	for _, s := range []string{"", "0.0.0.0/0", "::/0", "10.1.2.3/16", "fe80::1%eth0", "localhost", "10.0.0.0/33", "::ffff:0:0/90"} {
		if n, err := ParseNetwork(s); err == nil {
			t.Errorf("%q is %v", s, n)
		}
	}
	n, _ := ParseNetwork("10.0.0.0/8")
	if !n.Names(netip.MustParseAddr("::ffff:10.2.3.4"), Private) || n.Names(netip.MustParseAddr("11.0.0.0"), Public) {
		t.Error("10.0.0.0/8 does not name what it is")
	}
	if n.Names(netip.MustParseAddr("::ffff:10.2.3.4%eth0"), Invalid) || n.Names(netip.Addr{}, Invalid) {
		t.Error("an address with a zone is named")
	}
}

func TestClassNames(t *testing.T) {
	for c := Public; c <= Reserved; c++ {
		if s := c.String(); s == "" || s == "unknown" {
			t.Errorf("%d has no name", c)
		}
	}
	if fmt.Sprint(Reserved+1) != "unknown" {
		t.Error("a class that is none has a name")
	}
}
