package bundle

import (
	"reflect"
	"strings"
	"testing"
)

func TestClusterKeys(t *testing.T) {
	with := func(text string) string { return minimal + "\ncluster: " + text + "\n" }
	if parse(t, minimal).Cluster != nil {
		t.Error("it may join although nothing says so")
	}
	if k := parse(t, with("{}")).Cluster; !reflect.DeepEqual(k, &Cluster{}) {
		t.Errorf("%+v", k)
	}
	if k := parse(t, with("{journal: {size: 64MiB}}")).Cluster; !reflect.DeepEqual(k, &Cluster{Journal: 64 << 20}) {
		t.Errorf("%+v", k)
	}
	m := parse(t, with("{roles: [front, back], zone: a, listen: '127.0.0.1:7420', control: true}"))
	if k := m.Cluster; !reflect.DeepEqual(k, &Cluster{Roles: []string{"back", "front"}, Zone: "a", Listen: "127.0.0.1:7420", Control: true}) {
		t.Errorf("%+v", k)
	}
	if p := planOf(parse(t, with("{}")), m); len(p.whole) != 1 || !strings.HasPrefix(p.whole[0], "cluster has changed") {
		t.Error(p.whole)
	}
	for text, why := range map[string]string{
		"{roles: [a, a]}": "twice", "{roles: [a b]}": "roles", "{zone: a b}": "zone", "{lease: 1s}": "lease",
		"{journal: {size: 63MiB}}": "cluster.journal.size", "{journal: {size: 3GiB}}": "cluster.journal.size", "{journal: {size: many}}": "cluster.journal.size",
		"{journal: 64MiB}": "cluster.journal", "{journal: {bytes: 64MiB}}": "bytes",
	} {
		if _, err := Parse("bundle.yaml", []byte(with(text))); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
