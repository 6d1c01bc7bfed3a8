package bundle

import "github.com/wasmactors/wasmactors/host/observe"

// Latencies are how long requests of the gateway and of services took, for observe.Options.WithLatencies.
func (b *Bundle) Latencies() (list []observe.Latency) {
	if g := b.Gateway(); g != nil {
		for _, r := range g.Figures().Routes {
			if r.Times.N() > 0 {
				list = append(list, observe.LatencyOf("request", r.Route, r.Times))
			}
		}
	}
	for _, s := range b.Services() {
		for _, x := range s.Times() {
			list = append(list, observe.LatencyOf("service", s.Name()+" "+x.Op, x.Counts))
		}
	}
	return list
}
