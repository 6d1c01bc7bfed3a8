package bundle

import "github.com/wasmactors/wasmactors/host/service"

// The attacks by the keys of tcp and udp, whose grants an actor and one that a route makes have alike.
func init() {
	attacks["services.tcp.nat64[]"] = attack{"services: {tcp: {nat64: [\"2001:db8::/96\"]}}\n", service.ReachConnect, "2001:db8::/96", nil}
	attacks["services.udp.nat64[]"] = attack{"services: {udp: {nat64: [\"2001:db8::/96\"]}}\n", service.ReachConnect, "2001:db8::/96", nil}
	type key struct {
		name, grant string
		kind        service.Reach
		value       string
	}
	of := map[string][]key{
		"tcp": {
			{"connect[]", "connect: [\"10.0.0.1:22\"]", service.ReachConnect, "10.0.0.1:22"},
			{"listen[]", "listen: [\":2222\"]", service.ReachListen, ":2222"},
			{"private[]", "connect: [\"127.0.0.1:1\"], private: [loopback]", service.ReachConnect, "loopback"},
			{"tls.certificates[].cert", "listen: [\"127.0.0.1:0\"], tls: {certificates: [{cert: OUT/cert, key: key}]}", service.ReachRead, "OUT/cert"},
			{"tls.certificates[].key", "listen: [\"127.0.0.1:0\"], tls: {certificates: [{cert: cert, key: OUT/key}]}", service.ReachRead, "OUT/key"},
			{"tls.client-ca", "listen: [\"127.0.0.1:0\"], tls: {client-ca: OUT/cert}", service.ReachRead, "OUT/cert"},
			{"tls.roots", "connect: [\"127.0.0.1:1\"], tls: {roots: OUT/cert}", service.ReachRead, "OUT/cert"},
		},
		"udp": {
			{"connect[]", "connect: [\"10.0.0.1:53\"]", service.ReachConnect, "10.0.0.1:53"},
			{"listen[]", "listen: [\":5353\"]", service.ReachListen, ":5353"},
			{"private[]", "connect: [\"127.0.0.1:1\"], private: [loopback]", service.ReachConnect, "loopback"},
		},
	}
	for name, keys := range of {
		for _, k := range keys {
			grant := "capabilities: {" + name + ": {" + k.grant + "}}"
			attacks["actors.*.capabilities."+name+"."+k.name] = attack{
				"wasmactors: 1\nname: b\nmodules: {m: {wasm: m.wasm}}\nactors: {a: {type: echo, " + grant + "}}\n", k.kind, k.value, nil,
			}
			attacks["http.routes.*.make.capabilities."+name+"."+k.name] = attack{
				"http: {listen: [{address: 127.0.0.1:0}], routes: {\"GET /{x}\": {to: \"/user/m-{x}\", make: {type: echo, " + grant + "}}}}\n", k.kind, k.value, nil,
			}
		}
	}
}
