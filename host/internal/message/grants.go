package message

import (
	"context"

	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// WithoutGrants is the attachment of a message that another actor forwards.
func WithoutGrants(at *mailbox.Attached) *mailbox.Attached {
	if at == nil || at.Context == nil && at.Behalf == "" {
		return nil
	}
	return &mailbox.Attached{Context: at.Context, Behalf: at.Behalf}
}

// Values is the attachment of an ask from Go: the values of these keys that its context has; nil if it has none.
func Values(ctx context.Context, keys []any) *mailbox.Attached {
	values := context.Background()
	for _, key := range keys {
		if v := ctx.Value(key); v != nil {
			values = context.WithValue(values, key, v)
		}
	}
	if values == context.Background() {
		return nil
	}
	return &mailbox.Attached{Context: values}
}
