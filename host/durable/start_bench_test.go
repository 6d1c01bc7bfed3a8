package durable

import (
	"fmt"
	"testing"
)

// BenchmarkStart is a start of many actors, each of which has handled a message before the checkpoint: to the first answer.
func BenchmarkStart(b *testing.B) {
	const actors = 5000
	image, props := puppetImage(b), Props{}
	for i := range actors {
		props[fmt.Sprint("a", i)] = puppet(image)
	}
	w := mustOpen(b, b.TempDir(), props)
	for name := range props {
		w.tell(name, add)
	}
	if err := w.Idle(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := w.store.Checkpoint(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.close()
	for b.Loop() {
		again := mustOpen(b, w.dir, props)
		if n := again.report("a1"); n != 1 {
			b.Fatal(n)
		}
		b.StopTimer()
		again.close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/actors, "us/actor")
}
