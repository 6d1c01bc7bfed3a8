package errs

// NotAdmitted is a recorder's refusal of a message.
type NotAdmitted struct{ Err error }

func (e NotAdmitted) Error() string { return ErrMailboxFull.Error() + ": " + e.Err.Error() }

// Unwrap makes it ErrMailboxFull, too.
func (e NotAdmitted) Unwrap() []error { return []error{ErrMailboxFull, e.Err} }

// ManifestKey is the key that raises the bound, see KeyOf.
func (e NotAdmitted) ManifestKey() string { return KeyOf(e.Err, "store") }
