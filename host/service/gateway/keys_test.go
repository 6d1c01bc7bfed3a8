package gateway_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
)

// effects has for each key of http in manifests the test that shows it taking effect. That the keys
// arrive in the configuration is what TestKeysOfHTTP of package bundle is about.
var effects = map[string]func(*testing.T){
	"listen.address":       TestUnixListener, // and all others with a host and a port
	"listen.h2c":           TestH2C,
	"listen.tls.cert":      TestTLSOfListeners,
	"listen.tls.key":       TestTLSOfListeners,
	"listen.tls.min":       TestTLSOfListeners,
	"listen.tls.client-ca": TestTLSOfListeners,
	"listen.tls.optional":  TestTLSOfListeners,

	"limits.at-once": TestOverload,
	"limits.header":  TestHostileRequests,
	"limits.headers": TestHostileRequests,
	"limits.body":    TestBodiesOfRoutes,
	"limits.inline":  TestInline,

	"timeouts.header":  TestTimeoutsOfConnections,
	"timeouts.write":   TestTimeoutsOfConnections,
	"timeouts.idle":    TestTimeoutsOfConnections,
	"timeouts.body":    TestTimeoutsOfRoutes,
	"timeouts.handler": TestTimeoutsOfRoutes,

	"client.rate":    TestClients,
	"client.burst":   TestClients,
	"client.at-once": TestClients,
	"client.by":      TestClients,
	"client.known":   TestClients,

	"cors.origins":     TestCORS,
	"cors.methods":     TestCORS,
	"cors.headers":     TestCORS,
	"cors.expose":      TestCORS,
	"cors.credentials": TestCORS,
	"cors.max-age":     TestCORS,

	"compress.least": TestCompression,
	"compress.types": TestTypesOfCompression,
	"health.live":    TestDrain,
	"health.ready":   TestDrain,
	"drain.delay":    TestDrain,
	"drain.most":     TestDrainIsBounded,
	"access-log":     TestLog,
	"proxies":        TestProxies,

	"routes.to":                   TestPaths,
	"routes.make.type":            TestPropsOnDemand,
	"routes.make.args":            TestPropsOnDemand,
	"routes.make.limits":          TestPropsOnDemand,
	"routes.make.mailbox":         TestPropsOnDemand,
	"routes.make.dispatcher":      TestPropsOnDemand,
	"routes.make.capabilities":    TestPropsOnDemand,
	"routes.make.crashed-message": TestPropsOnDemand,
	"routes.make.supervision":     TestPropsOnDemand,
	"routes.make.most":            TestActorsOnDemand,
	"routes.make.idle":            TestActorsOnDemand,
	"routes.pool":                 TestPools,
	"routes.pick":                 TestPools,
	"routes.static.dir":           TestStatic,
	"routes.static.index":         TestStatic,
	"routes.static.cache":         TestStatic,
	"routes.static.headers":       TestStatic,

	"routes.auth.basic.file":    TestBasic,
	"routes.auth.basic.realm":   TestBasic,
	"routes.auth.jwt.keys.alg":  TestJWT,
	"routes.auth.jwt.keys.file": TestJWT,
	"routes.auth.jwt.keys.id":   TestJWT,
	"routes.auth.jwt.audience":  TestJWT,
	"routes.auth.jwt.issuer":    TestJWT,
	"routes.auth.jwt.leeway":    TestJWT,
	"routes.auth.jwt.claims":    TestJWT,
	"routes.auth.mtls.subjects": TestMTLS,

	"routes.cors.origins":     TestCORSOfARoute, // the others are those of all routes
	"routes.cors.methods":     TestCORS,
	"routes.cors.headers":     TestCORS,
	"routes.cors.expose":      TestCORS,
	"routes.cors.credentials": TestCORS,
	"routes.cors.max-age":     TestCORS,

	"routes.client.rate":    TestBoundsOfRequests,
	"routes.client.burst":   TestBoundsOfRequests,
	"routes.client.at-once": TestBoundsOfRequests,
	"routes.client.by":      TestClients,
	"routes.client.known":   TestClients,

	"routes.at-once":      TestBoundsOfRequests,
	"routes.max-body":     TestBodiesOfRoutes,
	"routes.timeout":      TestTimeoutsOfRoutes,
	"routes.body-timeout": TestTimeoutsOfRoutes,
	"routes.headers":      TestHeadersOfARoute,
	"routes.cancel":       TestClientGoes,
	"routes.compress":     TestCompression,

	"routes.upgrade.websocket": TestWebSocket,
	"routes.upgrade.events":    TestEvents,
	"routes.upgrade.origins":   TestWebSocketHandshake,
	"routes.upgrade.message":   TestMessageOfAWebSocket,
	"routes.upgrade.outbox":    TestConnectionRequests,
	"routes.upgrade.ping":      TestHostileFrames,
	"routes.upgrade.deflate":   TestDeflate,
}

// shared are what actors on demand have like all others, with tests of their own.
var shared = []string{"routes.make.limits", "routes.make.mailbox", "routes.make.dispatcher", "routes.make.capabilities", "routes.make.supervision"}

// A key that is added to the grammar needs a test of what it does, and one that has gone needs none.
func TestEveryKeyHasAnEffect(t *testing.T) {
	var schema struct {
		Properties map[string]node `json:"properties"`
	}
	if err := json.Unmarshal(bundle.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var keys []string
	root := schema.Properties["http"]
	root.leaves("", func(key string) { keys = append(keys, key) })
	if len(keys) < 50 {
		t.Fatalf("the schema has %d keys below http", len(keys))
	}
	for _, key := range keys {
		if effects[key] == nil {
			t.Errorf("http.%s: no test shows its effect", key)
		}
	}
	for key := range effects {
		if !slices.Contains(keys, key) {
			t.Errorf("http.%s: there is no such key", key)
		}
	}
}

// node is a part of a JSON Schema.
type node struct {
	Properties map[string]node `json:"properties"`
	Items      *node           `json:"items"`
	Additional json.RawMessage `json:"additionalProperties"` // of a mapping: a node
}

// leaves calls f with the keys that have no keys of their own.
func (n *node) leaves(path string, f func(string)) {
	var values node
	switch {
	case slices.Contains(shared, path):
	case n.Items != nil:
		n.Items.leaves(path, f)
		return
	case len(n.Properties) > 0:
		if path != "" {
			path += "."
		}
		for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
			child := n.Properties[key]
			child.leaves(path+key, f)
		}
		return
	case len(n.Additional) > 0 && json.Unmarshal(n.Additional, &values) == nil:
		values.leaves(path, f)
		return
	}
	f(path)
}
