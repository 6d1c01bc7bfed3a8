package natscluster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// enrolled asks an authority directly.
func enrolled(t testing.TB, by *Identity, text, dir string, now time.Time) (*Identity, error) {
	t.Helper()
	tok, err := parseToken(text)
	if err != nil {
		return nil, err
	}
	e, b, err := newEnrolment(tok)
	if err != nil {
		t.Fatal(err)
	}
	reply, _, why := by.admit(b, now)
	if reply == nil {
		return nil, errors.New(why)
	}
	return e.finish(dir, reply)
}

func tokenOf(t testing.TB, id *Identity, node string) string {
	t.Helper()
	text, err := id.Token(node, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestATokenIsGoodOnce(t *testing.T) {
	first := founded(t, 1, 1)[0]
	dir := t.TempDir()
	text := tokenOf(t, first, "b")
	id, err := enrolled(t, first, text, filepath.Join(dir, "b"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := LoadIdentity(filepath.Join(dir, "b")); err != nil || again.Node != "b" || again.ID != first.ID || again.Signs() || id.Node != "b" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := again(t, first, text, dir); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("a second time: %v", err)
	}
	reloaded, err := LoadIdentity(first.dir) // the authority has started again
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again(t, reloaded, text, dir); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("after a start of the authority: %v", err)
	}
	if _, err := id.Token("c", time.Hour); err == nil {
		t.Error("a node without the authority's key makes tokens")
	}
}

// A node whose answer was lost asks again, and gets it; no two answers have the same nonce.
func TestALostAnswer(t *testing.T) {
	first := founded(t, 1, 1)[0]
	tok, err := parseToken(tokenOf(t, first, "b"))
	if err != nil {
		t.Fatal(err)
	}
	e, b, err := newEnrolment(tok)
	if err != nil {
		t.Fatal(err)
	}
	lost, _, why := first.admit(b, time.Now())
	if why != "" {
		t.Fatal(why)
	}
	reply, _, why := first.admit(b, time.Now())
	if why != "" {
		t.Fatalf("the same node asks again: %s", why)
	}
	if bytes.Equal(lost[:12], reply[:12]) {
		t.Error("two answers have the same nonce")
	}
	if _, err := e.finish(filepath.Join(t.TempDir(), "b"), reply); err != nil {
		t.Error(err)
	}
	if _, b, err = newEnrolment(tok); err != nil {
		t.Fatal(err)
	}
	if _, _, why := first.admit(b, time.Now()); !strings.Contains(why, "used before") {
		t.Errorf("another node has used the token: %q", why)
	}
}

// A folder that cannot be a node's is refused before the token is used.
func TestEnrolLooksAtTheFolderFirst(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := founded(t, 1, 1)[0] // nobody listens there
	if _, err := Enrol(within(t, time.Minute), dir, tokenOf(t, first, "b"), ""); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
}

// What a NATS that exists is addressed with is not shown.
func TestAddressesAreShownWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"nats://u:secret@h:4222": "nats://h:4222", "secret@h, tls://i:1": "nats://h,tls://i:1", "h:4222": "nats://h:4222",
		"http://h": "", "": "", "nats://u:secret@h:x": "", "nats://h,,": "",
	} {
		if got := withoutSecrets(text); got != want {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

func again(t testing.TB, by *Identity, text, dir string) (*Identity, error) {
	return enrolled(t, by, text, filepath.Join(dir, "again"), time.Now())
}

func TestTokensThatAreRefused(t *testing.T) {
	first, other := founded(t, 1, 1)[0], founded(t, 1, 1)[0]
	dir := t.TempDir()
	good := tokenOf(t, first, "b")
	change := func(f func(*token)) string {
		x, err := parseToken(good)
		if err != nil {
			t.Fatal(err)
		}
		f(x)
		return tokenPrefix + base64.RawURLEncoding.EncodeToString(mustEncode(x))
	}
	for name, c := range map[string]struct {
		text, why string
		now       time.Time
	}{
		"expired":           {good, "expired", time.Now().Add(2 * time.Hour)},
		"of another name":   {change(func(x *token) { x.Node = "c" }), "not one of this cluster", time.Now()},
		"for longer":        {change(func(x *token) { x.Until += 100 }), "not one of this cluster", time.Now()},
		"of another number": {change(func(x *token) { x.ID[0]++ }), "not one of this cluster", time.Now()},
		"another cluster's": {tokenOf(t, other, "b"), "of another cluster", time.Now()},
		"no token":          {"abc", "no token", time.Now()},
		"half a token":      {good[:len(good)/2], "damaged", time.Now()},
	} {
		if _, err := enrolled(t, first, c.text, filepath.Join(dir, "x"), c.now); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := enrolled(t, first, good, filepath.Join(dir, "b"), time.Now()); err != nil {
		t.Errorf("the token itself, after all that: %v", err)
	}
}

func FuzzToken(f *testing.F) {
	f.Add(tokenOf(f, founded(f, 1, 1)[0], "b"))
	f.Add("wat1.")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := parseToken(text)
		if err != nil {
			return
		}
		if len(x.Proof) == 0 || x.Node == "" || len(x.Addresses) > 5 {
			t.Errorf("%+v", x)
		}
	})
}

// Whatever is sent to the authority, it signs nothing.
func FuzzAdmit(f *testing.F) {
	first := founded(f, 1, 1)[0]
	tok, err := parseToken(tokenOf(f, first, "b"))
	if err != nil {
		f.Fatal(err)
	}
	_, b, err := newEnrolment(tok)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:len(b)-1])
	f.Add(b[:65])
	f.Fuzz(func(t *testing.T, b []byte) {
		if reply, _, why := first.admit(b, time.Now()); why == "" || reply != nil {
			t.Errorf("%x is taken", b)
		}
	})
}

// pairOf is the links of two nodes, without NATS.
func pairOf(t testing.TB, a, b *Identity, e *events) (*links, *links) {
	t.Helper()
	var all []*links
	for i, id := range []*Identity{a, b} {
		l := &links{id: id, event: e.add, peers: map[uint16]*peer{}, names: map[string]*peer{}, refused: &refusals{event: e.add}}
		l.salt[0] = byte(i + 1)
		all = append(all, l)
	}
	for i, l := range all {
		other := []*Identity{b, a}[i]
		l.Introduce(cluster.Member{Number: uint16(2 - i), Born: 1, Name: other.Node, Identity: other.Certificate()})
	}
	return all[0], all[1]
}

func sealed(l *links, to uint16, text string) []byte {
	l.count++
	return l.seal(l.peers[to], []byte(text))
}

func TestPacketsOfOthers(t *testing.T) {
	ids, other := founded(t, 1, 3), founded(t, 1, 2)
	e := &events{}
	a, b := pairOf(t, ids[0], ids[1], e)
	packet := sealed(a, 2, "x")
	if number, got, why := b.open(bytes.Clone(packet)); number != 1 || string(got) != "x" || why != "" {
		t.Fatalf("%d %q %s", number, got, why)
	}
	for i := range packet {
		bad := append([]byte(nil), packet...)
		bad[i] ^= 1
		if _, got, why := b.open(bad); got != nil {
			t.Errorf("byte %d: %q, %s", i, got, why)
		}
		if _, got, _ := b.open(bytes.Clone(packet[:i])); got != nil {
			t.Errorf("the first %d bytes: %q", i, got)
		}
	}
	if _, got, why := a.open(bytes.Clone(packet)); got != nil {
		t.Errorf("its own: %q, %s", got, why)
	}
	c, _ := pairOf(t, ids[2], ids[1], e) // a member that says it is another
	c.id = &Identity{Description: c.id.Description, Node: "n0"}
	if _, got, why := b.open(sealed(c, 2, "x")); got != nil || !strings.Contains(why, "not of the node that it names") {
		t.Errorf("another member's: %q, %s", got, why)
	}
	x, _ := pairOf(t, other[0], other[1], e)
	if _, got, why := b.open(sealed(x, 2, "x")); got != nil || why == "" {
		t.Errorf("another cluster's: %q, %s", got, why)
	}
	for name, m := range map[string]cluster.Member{
		"another authority":          {Number: 7, Name: "n0", Identity: other[0].Certificate()},
		"another node's certificate": {Number: 7, Name: "n9", Identity: ids[2].Certificate()},
		"no certificate":             {Number: 7, Name: "n2"},
		"the authority itself":       {Number: 7, Name: "authority", Identity: ids[0].authority.Raw},
	} {
		b.refused.told = time.Time{}
		before := len(e.all)
		b.Introduce(m)
		if b.peers[7] != nil || len(e.all) == before {
			t.Errorf("%s is taken for a node", name)
		}
	}
}

func FuzzLinks(f *testing.F) {
	ids := founded(f, 1, 2)
	a, b := pairOf(f, ids[0], ids[1], &events{})
	good := sealed(a, 2, "x")
	f.Add(good[:len(good)-1])
	f.Add([]byte{packetVersion})
	f.Fuzz(func(t *testing.T, packet []byte) {
		if _, got, _ := b.open(bytes.Clone(packet)); got != nil {
			t.Errorf("%x is a packet", packet)
		}
	})
}

func TestFoldersThatAreRefused(t *testing.T) {
	for name, d := range map[string]Description{
		"two keepers":                         {Name: "x", Keepers: []Keeper{{"a", "h:1"}, {"b", "h:3"}}},
		"a name twice":                        {Name: "x", Keepers: []Keeper{{"a", "h:1"}, {"a", "h:3"}, {"c", "h:5"}}},
		"an address twice":                    {Name: "x", Keepers: []Keeper{{"a", "h:1"}, {"b", "h:1"}, {"c", "h:5"}}},
		"no port":                             {Name: "x", Keepers: []Keeper{{"a", "h"}}},
		"the last port":                       {Name: "x", Keepers: []Keeper{{"a", "h:65535"}}},
		"a name with words":                   {Name: "x y", Keepers: []Keeper{{"a", "h:1"}}},
		"a short lease":                       {Name: "x", Keepers: []Keeper{{"a", "h:1"}}, Lease: EmbeddedLease - 1},
		"a short lease of a NATS that exists": {Name: "x", URL: "nats://h", Lease: OutsideLease - 1},
		"somebody else keeps":                 {Name: "x", Keepers: []Keeper{{"b", "h:1"}}},
	} {
		if _, err := Init(filepath.Join(t.TempDir(), "a"), "a", d); err == nil {
			t.Error(name)
		}
	}
	first := founded(t, 1, 1)[0]
	if _, err := Init(first.dir, "n0", first.Description); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("over another node: %v", err)
	}
	if _, err := LoadIdentity(t.TempDir()); err == nil || !strings.Contains(err.Error(), "cluster init") {
		t.Errorf("no folder of a node: %v", err)
	}
}
