package wasi

// Dir is a directory of the host that a manifest grants.
type Dir struct {
	Host     string // path on the host
	Guest    string // path that the guest sees, such as /data
	ReadOnly bool
}

// Roots are the granted directories, opened. All instances of an image share
// them; they are safe for concurrent use.
type Roots struct{}

// OpenDirs opens the directories. No directory at all is fine.
func OpenDirs(dirs []Dir) (*Roots, error) { panic("skeleton") }

// Close closes the directories. Tables over them must not be used afterwards.
func (r *Roots) Close() error { panic("skeleton") }

// FileTable holds one instance's descriptors: 0 to 2 are the standard streams,
// then come the granted directories, then what the guest opens. It is not safe
// for concurrent use.
type FileTable struct{}

// NewFileTable is a table over roots (nil: no directory) in which at most
// maxOpen files may be open at a time, 0 meaning 64.
func NewFileTable(roots *Roots, maxOpen int) *FileTable { panic("skeleton") }

// Reset closes everything that the guest has opened.
func (t *FileTable) Reset() { panic("skeleton") }
