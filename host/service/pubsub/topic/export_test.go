package topic

// Cached is how much is in the cache.
func Cached[T any](x *Index[T]) (topics, values int) { return len(x.cache), x.cached }

// Forget empties the cache.
func Forget[T any](x *Index[T]) { x.forget() }
