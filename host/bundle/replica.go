package bundle

import "maps"

// Replica is the bundle again, for a system that runs beside that of the first, as on another node of a simulated cluster. It has the
// images of the first, which must be closed after it, and actors, services and a place in a cluster of its own. Its modules do not change
// when those of the first do. It must not be made while the first is changed.
func (b *Bundle) Replica() *Bundle {
	m := *b.Manifest
	r := &Bundle{
		engine: b.engine, borrowed: true, loadOnly: b.loadOnly, log: b.log, traces: b.traces, adjustProps: b.adjustProps, noStore: b.noStore,
		services: services{place: b.services.place}, adjustStore: b.adjustStore, noRecorder: b.noRecorder, adjustRecorder: b.adjustRecorder,
	}
	l := maps.Clone(b.loaded)
	r.take(&m, l)
	r.modules = modulesOf(l)
	return r
}
