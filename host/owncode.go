package host

import "github.com/wasmactors/wasmactors/internal/sandbox"

// The code of a durable actor is its own: a restart keeps it, whatever its module has by then.

// begins says which image the next incarnation of a durable actor begins with. It is in use then, if it is open.
func begins(g *guest, image *sandbox.Image) {
	if image == nil || image == g.own {
		return
	}
	used := image != g.inst.Image
	if used && !sandbox.Use(image) {
		return
	}
	disown(g)
	g.own, g.ownUsed = image, used
}

// disown is called at the end of the guest: no incarnation comes after it.
func disown(g *guest) {
	if g.ownUsed {
		sandbox.Unuse(g.own)
		g.ownUsed = false
	}
}

// passOn is called before the guest runs another image, which is in use: the one before is in use no more, unless its next incarnation
// begins with it.
func passOn(g *guest, image *sandbox.Image) {
	switch {
	case g.ownUsed && g.own == image:
		sandbox.Unuse(image)
		g.ownUsed = false
	case g.own != nil && g.own == g.inst.Image && g.own != image:
		g.ownUsed = true
		return
	}
	sandbox.Unuse(g.inst.Image)
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
