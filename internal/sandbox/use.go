package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// An actor uses an image as long as it runs its code, also while it sleeps and has no instance. A retired image is closed
// by its last user. The word of uses has the number of users above its lowest bit, which says that the image is retired.

// Use says that an actor runs the image, until Unuse. It is false if the image is retired and has had its last user: it
// is closed then.
func Use(i *Image) bool {
	for {
		n := i.uses.Load()
		if n == retired {
			return false
		}
		if i.uses.CompareAndSwap(n, n+user) {
			return true
		}
	}
}

// Unuse takes back a Use. nil is no image.
func Unuse(i *Image) {
	if i == nil {
		return
	}
	for n := i.uses.Load(); n >= user; n = i.uses.Load() {
		if i.uses.CompareAndSwap(n, n-user) {
			if n-user == retired {
				_ = i.Close()
			}
			return
		}
	}
}

// Users is how many actors run the image.
func Users(i *Image) int { return int(i.uses.Load() / user) }

const retired, user = 1, 2

// Retire closes the image as soon as no actor runs it, which may be at once. It is for an image that no module and no props
// name any more. It is idempotent, and safe for concurrent use.
func (i *Image) Retire() {
	if i.uses.Or(retired) < user { // Or returns what was before
		_ = i.Close()
	}
}

// Replaces says why actors of an image could not go on with another one; nil: they can. It must have all its types, an inbox that
// is at least as large, and take large messages if the old one does.
func Replaces(image, old *Image) error {
	d := image.Description()
	for _, t := range old.Description().Types {
		if !d.Has(t) {
			return fmt.Errorf("the new image has no actor type %q, it has %s", t, strings.Join(d.Types, ", "))
		}
	}
	if InboxCap(image) < InboxCap(old) {
		return fmt.Errorf("the new image has an inbox of %d bytes, the old one of %d", InboxCap(image), InboxCap(old))
	}
	if Large(old) && !Large(image) {
		return errors.New("the new image takes no messages that are larger than its inbox, the old one does")
	}
	return nil
}
