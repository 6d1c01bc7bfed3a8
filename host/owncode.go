package host

import "github.com/wasmactors/wasmactors/internal/sandbox"

// The code of a durable actor is its own: a restart keeps it, whatever its module has by then.

// begins says which image the next incarnation of a durable actor begins with. The image is in use then.
func begins(g *guest, image *sandbox.Image) {
	if image != nil && sandbox.Use(image) {
		sandbox.Unuse(g.own)
		g.own = image
	}
}

// born has the incarnations of a durable actor run the code that its module has when its life begins, and says which that is.
func born(g *guest) []byte {
	for image := g.module.Image(); g.own == nil && image != nil; {
		begins(g, image)
		now := g.module.Image()
		if now == image {
			break
		}
		image = now // the one before may have been closed meanwhile
	}
	return fingerprintOf(g.own)
}

// fingerprintOf is what records call an image; nil: it has none.
func fingerprintOf(image *sandbox.Image) []byte {
	if image != nil {
		if sum, err := sandbox.Fingerprint(image); err == nil {
			return sum[:]
		}
	}
	return nil
}
